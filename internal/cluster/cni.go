package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CNI has the pod networks that were detected by the cluster's API objects. There may be
// several.
type CNI struct {
	Calico  *Calico  `json:"calico,omitempty"`
	Flannel *Flannel `json:"flannel,omitempty"`
	Antrea  *Antrea  `json:"antrea,omitempty"`
	// KubeProxyWindows names the DaemonSets that run kube-proxy on Windows nodes.
	KubeProxyWindows []string `json:"kubeProxyWindows,omitempty"`
	// KubeProxyImages has the image of each of KubeProxyWindows, in the same order; "" if the
	// DaemonSet has no container.
	KubeProxyImages []string `json:"kubeProxyImages,omitempty"`
	// KubeProxies has what decides whether each of KubeProxyWindows works, in the same order.
	KubeProxies []KubeProxy `json:"kubeProxies,omitempty"`
	// KubeProxyForm is the recorded form of kube-proxy, if there is none of KubeProxyWindows.
	KubeProxyForm KubeProxyForm `json:"kubeProxyForm,omitempty"`
}

// Flannel has flannel's settings, from its ConfigMap.
type Flannel struct {
	Namespace string `json:"namespace"`
	Network   string `json:"network,omitempty"`
	Backend   string `json:"backend,omitempty"` // vxlan, host-gw
	VNI       int    `json:"vni,omitempty"`     // Windows needs 4096; Linux's default is 1
	Port      int    `json:"port,omitempty"`    // Windows needs 4789; Linux's default is 8472
	// WindowsDaemonSets are flannel's DaemonSets for Windows nodes.
	WindowsDaemonSets []string `json:"windowsDaemonSets,omitempty"`
}

// CNI looks for the networks that are known to work with Windows nodes. If the cluster
// lacks a resource, that is not an error.
func (c *Cluster) CNI(ctx context.Context) (CNI, error) {
	list, err := c.client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return CNI{}, c.fail("look for the pod network", Permission{Verb: "list", Group: appsv1.GroupName,
			Resource: "daemonsets"}, err)
	}
	sets := list.Items
	found := CNI{}
	for _, d := range setsOnWindows(sets, "kube-proxy") {
		found.KubeProxyWindows = append(found.KubeProxyWindows, d.Namespace+"/"+d.Name)
		found.KubeProxyImages = append(found.KubeProxyImages, imageOf(d))
	}
	found.KubeProxies = c.kubeProxies(ctx, sets)
	if len(found.KubeProxies) == 0 {
		if choice, err := c.KubeProxyChoice(ctx); err == nil { // a record that cannot be read counts as missing
			found.KubeProxyForm = choice.Form
		}
	}
	if found.Calico, err = c.calico(ctx, sets); err != nil {
		return CNI{}, err
	}
	if found.Flannel, err = c.flannel(ctx, sets); err != nil {
		return CNI{}, err
	}
	if anyNamed(sets, "antrea-agent") {
		if found.Antrea, err = c.antrea(ctx, sets); err != nil {
			return CNI{}, err
		}
	}
	return found, nil
}

// flannel detects flannel by its ConfigMap in kube-flannel (the namespace of its manifest), in
// kube-system (the namespace of an older manifest), or in the namespace of its DaemonSet. It
// returns nil if there is no such ConfigMap.
func (c *Cluster) flannel(ctx context.Context, sets []appsv1.DaemonSet) (*Flannel, error) {
	namespaces := []string{"kube-flannel", metav1.NamespaceSystem}
	for _, d := range sets {
		if isNamed(d, "kube-flannel") && !slices.Contains(namespaces, d.Namespace) {
			namespaces = append(namespaces, d.Namespace)
		}
	}
	for _, namespace := range namespaces {
		data, exists, err := c.configMap(ctx, namespace, "kube-flannel-cfg")
		if err != nil {
			return nil, err
		}
		if !exists {
			continue
		}
		f := &Flannel{Namespace: namespace, WindowsDaemonSets: onWindows(sets, "kube-flannel")}
		if err := f.read(data["net-conf.json"]); err != nil {
			return nil, err
		}
		return f, nil
	}
	return nil, nil
}

// The defaults that flannel has on Linux. They apply if the ConfigMap does not set the
// field.
const (
	flannelVNI  = 1
	flannelPort = 8472
)

func (f *Flannel) read(document string) error {
	var conf struct {
		Network string
		Backend struct {
			Type string
			VNI  int
			Port int
		}
	}
	if err := json.Unmarshal([]byte(document), &conf); err != nil {
		return fmt.Errorf("read net-conf.json in ConfigMap %s/kube-flannel-cfg: %w", f.Namespace, err)
	}
	f.Network, f.Backend = conf.Network, conf.Backend.Type
	if !strings.EqualFold(f.Backend, "vxlan") {
		return nil
	}
	f.VNI, f.Port = conf.Backend.VNI, conf.Backend.Port
	if f.VNI == 0 {
		f.VNI = flannelVNI
	}
	if f.Port == 0 {
		f.Port = flannelPort
	}
	return nil
}

// onWindows returns the DaemonSets with this name that run on Windows nodes, as
// namespace/name.
func onWindows(sets []appsv1.DaemonSet, name string) []string {
	var found []string
	for _, d := range setsOnWindows(sets, name) {
		found = append(found, d.Namespace+"/"+d.Name)
	}
	return found
}

// setsOnWindows returns the DaemonSets with this name that run on Windows nodes.
func setsOnWindows(sets []appsv1.DaemonSet, name string) (found []appsv1.DaemonSet) {
	for _, d := range sets {
		if isNamed(d, name) && forWindows(d.Spec.Template.Spec) {
			found = append(found, d)
		}
	}
	return found
}

// imageOf returns the image of a DaemonSet's first container; "" if it has no container.
func imageOf(d appsv1.DaemonSet) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		return c.Image
	}
	return ""
}

// forWindows reports whether a pod is meant for Windows nodes, according to its operating
// system, its node selector, or its node affinity.
func forWindows(p corev1.PodSpec) bool {
	if p.OS != nil {
		return p.OS.Name == corev1.Windows
	}
	if p.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows) {
		return true
	}
	if p.Affinity == nil || p.Affinity.NodeAffinity == nil ||
		p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	for _, term := range p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == corev1.LabelOSStable && e.Operator == corev1.NodeSelectorOpIn &&
				slices.Contains(e.Values, string(corev1.Windows)) {
				return true
			}
		}
	}
	return false
}

// isNamed reports whether a DaemonSet has this name, possibly with the suffix of a variant
// (kube-flannel-ds-windows-amd64), or this app label.
func isNamed(d appsv1.DaemonSet, name string) bool {
	return strings.HasPrefix(d.Name, name) || d.Labels["k8s-app"] == name || d.Labels["app"] == name
}

func anyNamed(sets []appsv1.DaemonSet, name string) bool {
	return slices.ContainsFunc(sets, func(d appsv1.DaemonSet) bool { return isNamed(d, name) })
}
