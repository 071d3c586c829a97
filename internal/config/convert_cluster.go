package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// domainOfFork is the name that the swdt of the fork gave to the libvirt domain of its only node.
const domainOfFork = "windows"

// convertCluster converts the fork's format, in which one document of kind Cluster describes the
// control plane and one node, to a Cluster and a Node.
func convertCluster(o *older) string {
	cluster := o.object(
		"apiVersion", o.apiVersion(),
		"kind", scalar(v1alpha1.ClusterKind),
		"metadata", o.object("name", o.clusterName()),
		"spec", o.object("controlPlane", o.controlPlane(), "network", o.network()),
	)
	return o.write(cluster, o.node())
}

// apiVersion returns today's API version. It keeps the comment above the older document's API
// version, which is usually about the whole file.
func (o *older) apiVersion() *yaml.Node {
	today := scalar(v1alpha1.APIVersion)
	o.comments[today] = o.comments[o.take("apiVersion")]
	o.take("kind")
	return today
}

// clusterName returns the name of the cluster, which has no capital letters.
func (o *older) clusterName() *yaml.Node {
	name := o.take("metadata", "name")
	if name == nil || name.Value == strings.ToLower(name.Value) {
		return name
	}
	return remark(scalar(strings.ToLower(name.Value)), "in lower case, since containers get this name")
}

// workload returns the value at a path below spec.workload, as take does.
func (o *older) workload(path ...string) *yaml.Node {
	return o.take(append([]string{"spec", "workload"}, path...)...)
}

// hasAddress reports whether the document has the hostname of the node. Without it, the fork asked
// libvirt for the address.
func (o *older) hasAddress() bool {
	hostname := find(o.root, "spec", "workload", "virtualization", "ssh", "hostname")
	return hostname != nil && !isNull(hostname)
}

// controlPlane returns the control plane. If the fork made it with minikube, the result is a
// cluster of kind. Otherwise it is the cluster of the user's kubeconfig, as in the fork.
func (o *older) controlPlane() *yaml.Node {
	if !isTrue(find(o.root, "spec", "controlPlane", "minikube")) {
		o.take("spec", "controlPlane", "minikube")
		return o.object("existing", remark(&yaml.Node{Kind: yaml.MappingNode},
			"without minikube, the older swdt used the cluster of your kubeconfig"))
	}
	const fromVMs = "your machine, for VMs in libvirt's network default"
	settings := []any{"image", o.image()}
	if !o.hasAddress() {
		port := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: "6443"}
		settings = append(settings, "apiServerAddress", remark(scalar("192.168.122.1"), fromVMs), "apiServerPort", port)
	}
	kind := o.object(settings...)
	if kind == nil {
		kind = &yaml.Node{Kind: yaml.MappingNode}
	}
	if o.hasAddress() {
		o.comments[kind] = "# If the node is not on kind's bridge, set apiServerAddress to your machine's\n" +
			"# address in its network, and apiServerPort to 6443."
	}
	return o.object("kind", kind)
}

// image returns kind's image of the control plane's version. It returns nil if the version is
// not known; swdt then uses the default image.
func (o *older) image() *yaml.Node {
	wanted := o.planeVersion()
	if wanted == nil {
		o.reasons["spec.controlPlane.kubernetesVersion"] = "it is not a whole version: " +
			"write the name of kind's image as spec.controlPlane.kind.image"
		return nil
	}
	o.take("spec", "controlPlane", "kubernetesVersion")
	return remark(scalar("kindest/node:v"+wanted.String()), "kind does not publish an image of each version")
}

// planeVersion returns the version of the control plane that the fork made. It returns nil if the
// document has no valid version for it. The earliest form of the format has a single version for
// the control plane and the node, in spec.
func (o *older) planeVersion() *version.Version {
	text := find(o.root, "spec", "controlPlane", "kubernetesVersion")
	if text == nil {
		text = find(o.root, "spec", "version")
	}
	return versionOf(text)
}

// versionOf parses a version of Kubernetes. It returns nil if text is no version.
func versionOf(text *yaml.Node) *version.Version {
	if text == nil || text.Kind != yaml.ScalarNode {
		return nil
	}
	v, err := version.ParseSemantic(text.Value)
	if err != nil {
		return nil
	}
	return v
}

// network returns the pod network: Calico in the version that the fork installed. If the document
// has no such version, network returns nil.
func (o *older) network() *yaml.Node {
	wanted := o.take("spec", "calicoVersion")
	if wanted == nil {
		return nil
	}
	return o.object("plugin", scalar(v1alpha1.CalicoPlugin), "version",
		remark(wanted, "add the sha256 of its manifest, or leave the version out for the one that swdt knows"))
}

// node returns the node that spec.workload describes; nil if the document has no spec.workload.
func (o *older) node() *yaml.Node {
	if find(o.root, "spec", "workload") == nil {
		return nil
	}
	ssh := func(field string) *yaml.Node { return o.workload("virtualization", "ssh", field) }
	privateKey := ssh("privateKey")
	if privateKey == nil {
		privateKey = ssh("key")
	}
	enableRDP := o.takeEnableRDP("spec", "workload", "auxiliary", "enableRDP")
	if find(o.root, "spec", "workload", "auxiliary", "enableRDP") == nil {
		enableRDP = remark(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"},
			"was the default of the older swdt; without it Remote Desktop is left alone")
	}
	var name *yaml.Node // a copy without the comment above the name, which the cluster gets
	if old := o.take("metadata", "name"); old != nil {
		name = scalar(old.Value)
	}
	return o.object(
		"apiVersion", scalar(v1alpha1.APIVersion),
		"kind", scalar(v1alpha1.Kind),
		"metadata", o.object("name", name, "labels", o.take("metadata", "labels")),
		"spec", o.object(
			"credentials", o.object(
				"username", ssh("username"), "hostname", ssh("hostname"),
				"privateKey", privateKey, "password", ssh("password"),
			),
			"machine", o.machine(),
			"setup", o.object("enableRDP", enableRDP, "chocoPackages", o.workload("auxiliary", "chocoPackages")),
			"kubernetes", o.object(
				"version", o.nodeVersion(),
				"containerd", o.object("version", o.workload("containerdVersion")),
				"provisioners", o.takeProvisioners("spec", "workload", "provisioners"),
			),
		),
	)
}

// nodeVersion returns the version of the node's Kubernetes. In the samples of the fork, it is newer
// than the version of the control plane.
func (o *older) nodeVersion() *yaml.Node {
	wanted := o.workload("kubernetesVersion")
	if wanted == nil {
		return o.take("spec", "version")
	}
	node, plane := versionOf(wanted), o.planeVersion()
	made := isTrue(find(o.root, "spec", "controlPlane", "minikube"))
	if made && node != nil && plane != nil && plane.LessThan(node) {
		return remark(wanted, "must not be newer than the control plane, v"+plane.String())
	}
	return wanted
}

// machine returns the VM of a node without a hostname: the libvirt domain that the fork made.
func (o *older) machine() *yaml.Node {
	if o.hasAddress() {
		return nil
	}
	var uri *yaml.Node
	local := []string{v1alpha1.DefaultMachineURI, "qemu:///session"}
	old := find(o.root, "spec", "workload", "virtualization", "kvmQemuURI")
	switch {
	case old == nil:
	case slices.Contains(local, old.Value):
		uri = o.workload("virtualization", "kvmQemuURI")
	default:
		o.reasons["spec.workload.virtualization.kvmQemuURI"] = "swdt uses the libvirt of your machine: " +
			strings.Join(local, " or ")
	}
	return o.object(
		"driver", scalar(v1alpha1.LibvirtDriver),
		"domain", remark(scalar(domainOfFork), "the older swdt gave its VM this name"),
		"uri", uri,
	)
}
