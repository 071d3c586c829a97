package cluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Calico has the settings of Calico, installed by its operator or by manifests.
type Calico struct {
	Operator bool   `json:"operator"`
	BGP      string `json:"bgp,omitempty"` // Enabled, Disabled; "" if not set
	// WindowsDataplane is HNS or Disabled; "" if not set, which means Disabled.
	WindowsDataplane string   `json:"windowsDataplane,omitempty"`
	ServiceCIDRs     []string `json:"serviceCIDRs,omitempty"`
	// StrictAffinity is required by Windows; it is off if not set.
	StrictAffinity bool     `json:"strictAffinity"`
	Pools          []IPPool `json:"pools,omitempty"`
	// ServicesEndpoint reports whether ConfigMap kubernetes-services-endpoint exists,
	// which gives Calico on Windows the API server's address.
	ServicesEndpoint bool `json:"servicesEndpoint"`
	// WindowsDaemonSets are Calico's DaemonSets for Windows nodes.
	WindowsDaemonSets []string `json:"windowsDaemonSets,omitempty"`
}

// IPPool is a range of pod addresses.
type IPPool struct {
	Name  string `json:"name"`
	CIDR  string `json:"cidr"`
	IPIP  string `json:"ipip,omitempty"`  // Always, CrossSubnet, Never; Windows does not support IPIP
	VXLAN string `json:"vxlan,omitempty"` // Always, CrossSubnet, Never
}

// calico detects Calico by its operator's Installation, its node DaemonSet, or its address pools.
// It returns nil if the cluster has none of these.
func (c *Cluster) calico(ctx context.Context, sets []appsv1.DaemonSet) (*Calico, error) {
	installation, operator, err := c.custom(ctx, "operator.tigera.io", "v1", "installations", "default")
	if err != nil {
		return nil, err
	}
	pools, err := c.customAll(ctx, "crd.projectcalico.org", "v1", "ippools")
	if err != nil {
		return nil, err
	}
	// The CRDs alone prove nothing: they remain after Calico is removed.
	if !operator && len(pools) == 0 && !anyNamed(sets, "calico-node") {
		return nil, nil
	}
	found := &Calico{Operator: operator, Pools: poolsOf(pools), WindowsDaemonSets: onWindows(sets, "calico-node")}
	if operator {
		found.readInstallation(installation)
	}
	if found.StrictAffinity, err = c.strictAffinity(ctx); err != nil {
		return nil, err
	}
	for _, namespace := range []string{"tigera-operator", metav1.NamespaceSystem, "calico-system"} {
		_, exists, err := c.configMap(ctx, namespace, "kubernetes-services-endpoint")
		if err != nil {
			return nil, err
		}
		found.ServicesEndpoint = found.ServicesEndpoint || exists
	}
	return found, nil
}

func (f *Calico) readInstallation(o *unstructured.Unstructured) {
	f.BGP, _, _ = unstructured.NestedString(o.Object, "spec", "calicoNetwork", "bgp")
	f.WindowsDataplane, _, _ = unstructured.NestedString(o.Object, "spec", "calicoNetwork", "windowsDataplane")
	f.ServiceCIDRs, _, _ = unstructured.NestedStringSlice(o.Object, "spec", "serviceCIDRs")
}

// strictAffinity reads the setting from Calico's own API (ipamconfigurations). If this API or its
// object does not exist, strictAffinity reads the resource of older versions of Calico
// (ipamconfigs).
func (c *Cluster) strictAffinity(ctx context.Context) (bool, error) {
	for _, kept := range []schema.GroupVersionResource{
		{Group: "projectcalico.org", Version: "v3", Resource: "ipamconfigurations"},
		{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamconfigs"},
	} {
		o, exists, err := c.custom(ctx, kept.Group, kept.Version, kept.Resource, "default")
		if err != nil {
			return false, err
		}
		if exists {
			strict, _, _ := unstructured.NestedBool(o.Object, "spec", "strictAffinity")
			return strict, nil
		}
	}
	return false, nil
}

func poolsOf(list []unstructured.Unstructured) []IPPool {
	var pools []IPPool
	for _, o := range list {
		p := IPPool{Name: o.GetName()}
		p.CIDR, _, _ = unstructured.NestedString(o.Object, "spec", "cidr")
		p.IPIP, _, _ = unstructured.NestedString(o.Object, "spec", "ipipMode")
		p.VXLAN, _, _ = unstructured.NestedString(o.Object, "spec", "vxlanMode")
		pools = append(pools, p)
	}
	return pools
}

// custom reads one object of a kind that may not exist in the cluster. The bool is false if the
// cluster lacks the kind or the object.
func (c *Cluster) custom(ctx context.Context, group, version, resource, name string) (*unstructured.Unstructured,
	bool, error) {
	kind := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	o, err := c.dynamic.Resource(kind).Get(ctx, name, metav1.GetOptions{})
	if absent(err) {
		return nil, false, nil
	}
	return o, err == nil, c.fail(fmt.Sprintf("read %s.%s %s", resource, group, name),
		Permission{Verb: "get", Group: group, Resource: resource, Name: name}, err)
}

// customAll lists the objects of a kind. If the cluster lacks the kind, the list is empty.
func (c *Cluster) customAll(ctx context.Context, group, version, resource string) ([]unstructured.Unstructured, error) {
	kind := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	list, err := c.dynamic.Resource(kind).List(ctx, metav1.ListOptions{})
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.fail(fmt.Sprintf("list %s.%s", resource, group),
			Permission{Verb: "list", Group: group, Resource: resource}, err)
	}
	return list.Items, nil
}

// absent reports whether there is no such object, or no such kind.
func absent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
