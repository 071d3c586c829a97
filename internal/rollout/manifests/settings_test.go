package manifests_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/swdt-dev/swdt/internal/rollout/manifests"
	"github.com/swdt-dev/swdt/internal/sandbox/hostprocess"
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

// The controller runs on nodes of the control plane, or on those that the user chooses.
func TestControllerNodes(t *testing.T) {
	expression := func(key, operator string, values ...any) map[string]any {
		all := map[string]any{"key": key, "operator": operator}
		if len(values) > 0 {
			all["values"] = values
		}
		return all
	}
	for selector, want := range map[string][]any{
		"":                    {expression(manifests.ControlPlane, "Exists")},
		manifests.LinuxNodes:  {expression("kubernetes.io/os", "In", "linux")},
		"pool=trusted":        {expression("pool", "In", "trusted")},
		"pool in (a, b),!old": {expression("old", "DoesNotExist"), expression("pool", "In", "a", "b")},
		"pool!=a,size>3":      {expression("pool", "NotIn", "a"), expression("size", "Gt", "3")},
	} {
		objects, err := manifests.Objects(manifests.Settings{ControllerNodes: selector})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
		terms, _, err := unstructured.NestedSlice(objects[i].Object, "spec", "template", "spec", "affinity", "nodeAffinity",
			"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		if err != nil || len(terms) != 1 {
			t.Fatalf("%q: %d terms, %v", selector, len(terms), err)
		}
		if diff := cmp.Diff(want, terms[0].(map[string]any)["matchExpressions"]); diff != "" {
			t.Errorf("%q (-want +got):\n%s", selector, diff)
		}
	}
	for _, selector := range []string{"pool in", "a b", "=x"} {
		var wrong *manifests.SelectorError
		if err := (manifests.Settings{ControllerNodes: selector}).Check(); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", selector, err)
		}
	}
}

// The controller reaches the API server at the ports of its endpoints, and the node's pods have the quota that some
// clusters want for their priority.
func TestPortsAndQuota(t *testing.T) {
	objects, err := manifests.Objects(manifests.Settings{APIPorts: []int32{6443, 8443, 16443}})
	if err != nil {
		t.Fatal(err)
	}
	var ports []int64
	scopes := ""
	for _, o := range objects {
		switch o.GetKind() {
		case "NetworkPolicy":
			rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "egress")
			for _, p := range rules[0].(map[string]any)["ports"].([]any) {
				ports = append(ports, p.(map[string]any)["port"].(int64))
			}
		case "ResourceQuota":
			text, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			scopes = string(text)
		}
	}
	if diff := cmp.Diff([]int64{53, 53, 443, 6443, 8443, 16443}, ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	if !strings.Contains(scopes, `"scopeName":"PriorityClass","values":["system-node-critical"]`) {
		t.Errorf("the quota is %s", scopes)
	}
}

// The container of each node starts the program of its image, wherever the runtime has the root of the image.
func TestNodesContainerStarts(t *testing.T) {
	var c corev1.Container
	object := containerOf(t, manifests.Settings{}, "DaemonSet")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &c); err != nil {
		t.Fatal(err)
	}
	for name, windows := range hostprocess.All() {
		p, err := windows.Start(hostprocess.Image{Files: []string{"swdt-node.exe"}}, c, nil)
		if err != nil || p.Program != p.Root+"swdt-node.exe" {
			t.Errorf("%s: it starts %q, %v", name, p.Program, err)
		}
	}
}
