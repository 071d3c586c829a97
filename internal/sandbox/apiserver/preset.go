package apiserver

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// kubeletConfig is the initial kubelet configuration that kubeadm stores for every node.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
healthzBindAddress: 127.0.0.1
healthzPort: 10248
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
staticPodPath: /etc/kubernetes/manifests
`

// install creates the objects that exist after kubeadm init, and registers the controllers' hooks.
func (c *Cluster) install() error {
	c.store.hooks = []func(change){c.signRequest, c.taintNode, c.bindNetwork, c.emptyNamespace,
		c.fillToken}
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		namespace := object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name},
			"status": object{"phase": "Active"}}
		if err := c.plant(namespace); err != nil {
			return err
		}
	}
	if !c.options.NoPodNetwork {
		set := object{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": object{"name": podNetworkName,
			"namespace": "kube-system"}}
		if err := c.plant(set); err != nil {
			return err
		}
	}
	info, err := yaml.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "clusters": []any{object{"name": "", "cluster": object{
			"server": c.Server(), "certificate-authority-data": base64.StdEncoding.EncodeToString(c.ca.pem),
		}}},
	})
	if err != nil {
		return err
	}
	clusterConfig, err := yaml.Marshal(object{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "clusterName": "kubernetes",
		"kubernetesVersion": c.options.Version, "controlPlaneEndpoint": c.Address(),
		"networking": object{"dnsDomain": "cluster.local", "serviceSubnet": "10.96.0.0/12",
			"podSubnet": "192.168.0.0/16"},
	})
	if err != nil {
		return err
	}
	return errors.Join(
		c.plant(configMap("kube-public", clusterInfoName, "kubeconfig", string(info))),
		c.plant(configMap("kube-system", kubeletConfigName, "kubelet", kubeletConfig)),
		c.plant(configMap("kube-system", kubeadmConfigName, "ClusterConfiguration", string(clusterConfig))),
	)
}

func configMap(namespace, name, field, value string) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": namespace},
		"data": object{field: value}}
}

// Plant adds objects, given as YAML documents, to the cluster. It replaces existing objects of the
// same name, including their status.
func (c *Cluster) Plant(manifests string) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("plant: %w", err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		data, err := yaml.YAMLToJSON(document)
		if err != nil {
			return fmt.Errorf("plant: %w", err)
		}
		o, err := decode(data)
		if err != nil {
			return fmt.Errorf("plant: %w", err)
		}
		if err := c.plant(o); err != nil {
			return err
		}
	}
}

func (c *Cluster) plant(o object) error {
	apiVersion, kind := text(o, "apiVersion"), text(o, "kind")
	r, ok := c.kind(apiVersion, kind)
	if !ok {
		return fmt.Errorf("plant a %s of %s: the cluster has no such resource: use AddResource", kind, apiVersion)
	}
	name, ok := field(o, "metadata", "name").(string)
	if !ok || name == "" {
		return fmt.Errorf("plant a %s: metadata.name is %v: it must be a string (in YAML, quote n, y, on and off)",
			kind, field(o, "metadata", "name"))
	}
	k := key{r.qualified(), "", name}
	if r.Namespaced {
		k.namespace = text(o, "metadata", "namespace")
		if k.namespace == "" {
			k.namespace = "default"
		}
	}
	_, err := c.store.create(r, k, copyOf(o))
	if apierrors.IsAlreadyExists(err) {
		_, err = c.store.update(r, k, func(object) (object, error) { return copyOf(o), nil })
	}
	if err != nil {
		return fmt.Errorf("plant %s %s: %w", strings.ToLower(kind), name, err)
	}
	return nil
}

// Object returns an object as decoded JSON, and false if there is none. resource is the resource's
// full name, such as nodes or leases.coordination.k8s.io.
func (c *Cluster) Object(resource, namespace, name string) (map[string]any, bool) {
	o, ok := c.store.get(key{resource, namespace, name})
	if !ok {
		return nil, false
	}
	return copyOf(o), true
}

// RemoveOwned removes an object as the garbage collector would after its owner's deletion: without
// grace period or other checks. It reports whether the object existed.
func (c *Cluster) RemoveOwned(resource, namespace, name string) bool {
	for _, r := range c.table() {
		if r.qualified() == resource {
			_, err := c.store.update(r, key{resource, namespace, name}, func(object) (object, error) {
				return nil, nil
			})
			return err == nil
		}
	}
	return false
}
