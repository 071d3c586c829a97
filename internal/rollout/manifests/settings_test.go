package manifests_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/rollout/manifests"
)

// containerOf returns the container of the workload of a kind.
func containerOf(t *testing.T, s manifests.Settings, kind string) map[string]any {
	t.Helper()
	objects, err := manifests.Objects(s)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	containers, _, err := unstructured.NestedSlice(objects[i].Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("%s has %d containers, %v", kind, len(containers), err)
	}
	return containers[0].(map[string]any)
}

func TestSettings(t *testing.T) {
	s := manifests.Settings{ControllerImage: "r/controller:1", NodeImage: "r/node:1", APIServer: "[fd00::1]:6443"}
	controller, node := containerOf(t, s, "Deployment"), containerOf(t, s, "DaemonSet")
	if controller["image"] != "r/controller:1" || node["image"] != "r/node:1" {
		t.Errorf("the images are %v and %v", controller["image"], node["image"])
	}
	variables := map[string]any{}
	for _, v := range node["env"].([]any) {
		variables[v.(map[string]any)["name"].(string)] = v.(map[string]any)["value"]
	}
	want := map[string]any{"NODE_NAME": nil, "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
	if diff := cmp.Diff(want, variables); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(containerOf(t, manifests.Settings{}, "Deployment")["env"], controller["env"]); diff != "" {
		t.Errorf("the controller's environment (-want +got):\n%s", diff)
	}
}

func TestAddressesOfTheAPIServer(t *testing.T) {
	for _, address := range []string{"api.example", "https://api.example", ":6443", "api.example:"} {
		err := manifests.Settings{APIServer: address}.Check()
		if _, ok := errors.AsType[*manifests.APIServerError](err); !ok || !strings.Contains(err.Error(), address) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if err := (manifests.Settings{}).Check(); err != nil {
		t.Error(err)
	}
}
