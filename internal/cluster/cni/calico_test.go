package cni_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
)

func wanted(t *testing.T, n cni.Network) cni.Wanted {
	t.Helper()
	w, err := cni.Settings{Network: n}.Complete(cni.Facts{Version: "v1.36.3", PodCIDRs: []string{"10.244.0.0/16"},
		ServiceCIDRs: []string{"10.96.0.0/12"}, APIServer: "kind-control-plane:6443"})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// installation returns an Installation with a spec, some of whose fields swdt owns.
func installation(t *testing.T, spec, owned string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.tigera.io/v1", "kind": "Installation",
		"metadata": map[string]any{"name": "default"}}}
	content := map[string]any{}
	if err := json.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	o.Object["spec"] = content
	if owned != "" {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:serviceCIDRs":{}}}`)},
			{Manager: cni.Manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(owned)},
		})
	}
	return o
}

func TestInstallationAddsOnlyWhatIsMissing(t *testing.T) {
	pool := map[string]any{"name": "default-ipv4-ippool", "blockSize": int64(26), "cidr": "10.244.0.0/16",
		"encapsulation": "VXLAN", "natOutgoing": "Enabled", "nodeSelector": "all()"}
	all := map[string]any{"serviceCIDRs": []any{"10.96.0.0/12"},
		"calicoNetwork": map[string]any{"bgp": "Disabled", "windowsDataplane": "HNS", "ipPools": []any{pool}}}
	suitable := `{"serviceCIDRs":["10.1.0.0/16","10.96.0.0/12"],"calicoNetwork":{"bgp":"Disabled","windowsDataplane":"HNS",
		"ipPools":[{"cidr":"10.50.0.0/16","encapsulation":"None","blockSize":24}]}}`
	for name, test := range map[string]struct {
		live *unstructured.Unstructured
		want any
	}{
		"none":     {nil, all},
		"empty":    {installation(t, `{}`, ""), all},
		"suitable": {installation(t, suitable, ""), nil},
		"suitable, ours": {installation(t, suitable, `{"f:spec":{"f:calicoNetwork":{"f:bgp":{}}}}`),
			map[string]any{"calicoNetwork": map[string]any{"bgp": "Disabled"}}},
		"BGP": {installation(t, `{"serviceCIDRs":["10.96.0.0/12"],"calicoNetwork":{"bgp":"Enabled","windowsDataplane":"HNS",
			"ipPools":[{"cidr":"10.50.0.0/16","encapsulation":"VXLAN"}]}}`, ""),
			map[string]any{"calicoNetwork": map[string]any{"bgp": "Disabled"}}},
		"the default encapsulation, after a pool of IPv6": {installation(t, `{"serviceCIDRs":["10.96.0.0/12"],
			"calicoNetwork":{"bgp":"Disabled","windowsDataplane":"HNS",
			"ipPools":[{"cidr":"fd00::/64"},{"cidr":"10.50.0.0/16","natOutgoing":"Disabled"}]}}`, ""),
			map[string]any{"calicoNetwork": map[string]any{"ipPools": []any{map[string]any{"cidr": "fd00::/64"},
				map[string]any{"cidr": "10.50.0.0/16", "natOutgoing": "Disabled", "encapsulation": "VXLAN"}}}}},
		"another type": {installation(t,
			`{"serviceCIDRs":"x","calicoNetwork":{"bgp":7,"windowsDataplane":[],"ipPools":{}}}`, ""), all},
	} {
		if diff := cmp.Diff(test.want, cni.Installation(wanted(t, cni.Calico), test.live).Object["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEndpointHasTheAddressOfTheNodes(t *testing.T) {
	want := map[string]any{"KUBERNETES_SERVICE_HOST": "kind-control-plane", "KUBERNETES_SERVICE_PORT": "6443"}
	if diff := cmp.Diff(any(want), cni.Endpoint(wanted(t, cni.Calico)).Object["data"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
