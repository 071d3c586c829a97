package cni

import (
	"net/netip"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// OperatorNamespace is the namespace of Calico's operator.
const OperatorNamespace = "tigera-operator"

// operatorName is the name of the operator's Deployment.
const operatorName = "tigera-operator"

// CheckCalico returns a *ManifestError if the manifest is not one of Calico's operator.
func CheckCalico(from string, manifest []*unstructured.Unstructured) error {
	switch {
	case find(manifest, "Deployment", operatorName) == nil:
		return &ManifestError{From: from, What: "it has no Deployment " + operatorName + " of Calico's operator"}
	case find(manifest, "CustomResourceDefinition", "installations.operator.tigera.io") == nil:
		return &ManifestError{From: from, What: "it has no CustomResourceDefinition installations.operator.tigera.io; " +
			"since v3.30, Calico has it in operator-crds.yaml: name that file as well (with --manifest again, or in crdManifest of a cluster's document)"}
	}
	return nil
}

// newObject returns an object that has only a kind and a name.
func newObject(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	if namespace != "" {
		o.SetNamespace(namespace)
	}
	return o
}

// The functions below return the objects that configure Calico, without content.
func installationObject() *unstructured.Unstructured {
	return newObject("operator.tigera.io/v1", "Installation", "", "default")
}

func apiServerObject() *unstructured.Unstructured {
	return newObject("operator.tigera.io/v1", "APIServer", "", "default")
}

func endpointObject() *unstructured.Unstructured {
	return newObject("v1", "ConfigMap", OperatorNamespace, "kubernetes-services-endpoint")
}

func ipamObject() *unstructured.Unstructured {
	return newObject("projectcalico.org/v3", "IPAMConfiguration", "", "default")
}

// Endpoint returns ConfigMap kubernetes-services-endpoint. Calico reads the API server's address
// from this ConfigMap, since the address of Service kubernetes does not work on Windows before
// Calico runs.
func Endpoint(w Wanted) *unstructured.Unstructured {
	o := Labelled(endpointObject(), Calico)
	o.Object["data"] = map[string]any{
		"KUBERNETES_SERVICE_HOST": w.APIServerHost,
		"KUBERNETES_SERVICE_PORT": strconv.Itoa(w.APIServerPort),
	}
	return o
}

// CalicoAPIServer returns the object by which the operator starts Calico's API server. Only the
// API of that server has the setting strictAffinity.
func CalicoAPIServer() *unstructured.Unstructured {
	o := Labelled(apiServerObject(), Calico)
	o.Object["spec"] = map[string]any{}
	return o
}

// Installation returns the operator's configuration with all settings that Windows needs. live is
// the present Installation, or nil. If live has a suitable value that swdt does not own, the result
// omits the field, so that swdt does not become an owner. If live has an unsuitable value, the
// result has the value that Windows needs, and the API server reports the conflict.
func Installation(w Wanted, live *unstructured.Unstructured) *unstructured.Unstructured {
	o := Labelled(installationObject(), Calico)
	ours := owned(live)
	for _, s := range installationSettings(w) {
		value, exists := liveField(live, s.path)
		suitable := exists && s.suits(value)
		switch {
		case !suitable:
			value = s.want(value)
		case !ours.Has(fieldpath.MakePathOrDie(anyPath(s.path)...)):
			continue
		}
		// This cannot fail: the path consists of maps that this function makes.
		_ = unstructured.SetNestedField(o.Object, value, s.path...)
	}
	return o
}

// setting is a field of an object, with the values that work with Windows.
type setting struct {
	path  []string
	suits func(live any) bool // reports whether a present value works with Windows
	want  func(live any) any  // the value that works, made from the present one; live may be nil
}

// windowsDataplane is the field that makes the operator run Calico on Windows nodes.
const windowsDataplane = "windowsDataplane"

func installationSettings(w Wanted) []setting {
	return []setting{
		exactly("Disabled", "spec", "calicoNetwork", "bgp"),
		exactly("HNS", "spec", "calicoNetwork", windowsDataplane),
		{[]string{"spec", "serviceCIDRs"}, w.suitableServices, func(any) any { return texts(w.ServiceCIDRs) }},
		{[]string{"spec", "calicoNetwork", "ipPools"}, suitablePools, w.pools},
	}
}

func exactly(value string, path ...string) setting {
	return setting{path, func(live any) bool { return live == value }, func(any) any { return value }}
}

// suitableServices reports whether a present list has all ranges of Service addresses.
func (w Wanted) suitableServices(live any) bool {
	list, _ := live.([]any)
	for _, cidr := range w.ServiceCIDRs {
		if !slices.Contains(list, any(cidr.String())) {
			return false
		}
	}
	return true
}

// suitablePools reports whether the operator accepts the pools for Windows: the first IPv4 pool must
// be encapsulated in VXLAN, or not at all.
func suitablePools(live any) bool {
	pools, _ := live.([]any)
	i := firstIPv4(pools)
	return i >= 0 && slices.Contains([]any{"VXLAN", "None"}, encapsulation(pools[i]))
}

// encapsulation returns the value of a pool's field encapsulation, whose default is IPIP.
func encapsulation(pool any) any {
	if fields, _ := pool.(map[string]any); fields["encapsulation"] != nil {
		return fields["encapsulation"]
	}
	return "IPIP"
}

// firstIPv4 returns the index of the first IPv4 pool, or -1.
func firstIPv4(pools []any) int {
	return slices.IndexFunc(pools, func(pool any) bool {
		fields, _ := pool.(map[string]any)
		text, _ := fields["cidr"].(string)
		cidr, err := netip.ParsePrefix(text)
		return err == nil && cidr.Addr().Is4()
	})
}

// pools returns the present pools, with VXLAN for the first IPv4 pool. If there is no IPv4 pool,
// it adds a pool of the pods' addresses.
func (w Wanted) pools(live any) any {
	pools, _ := live.([]any)
	i := firstIPv4(pools)
	if i < 0 {
		return append(slices.Clone(pools), map[string]any{
			"name": "default-ipv4-ippool", "blockSize": int64(26), "cidr": w.PodCIDR.String(), "encapsulation": "VXLAN",
			"natOutgoing": "Enabled", "nodeSelector": "all()",
		})
	}
	changed := slices.Clone(pools)
	pool := map[string]any{}
	for key, value := range pools[i].(map[string]any) {
		pool[key] = value
	}
	pool["encapsulation"] = "VXLAN"
	changed[i] = pool
	return changed
}

func liveField(live *unstructured.Unstructured, path []string) (any, bool) {
	if live == nil {
		return nil, false
	}
	value, exists, err := unstructured.NestedFieldCopy(live.Object, path...)
	return value, exists && err == nil
}

func anyPath(path []string) []any {
	all := make([]any, len(path))
	for i, part := range path {
		all[i] = part
	}
	return all
}

func texts(cidrs []netip.Prefix) []any {
	all := []any{}
	for _, cidr := range cidrs {
		all = append(all, cidr.String())
	}
	return all
}
