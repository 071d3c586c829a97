package v1alpha1

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSetDefaults(t *testing.T) {
	no := false
	node := Node{Spec: NodeSpec{
		Setup: Setup{Firewall: []FirewallRule{{Name: "a"}, {Name: "b", Direction: "out", Ports: "1"}}},
		Kubernetes: Kubernetes{Provisioners: []Provisioner{
			{Name: "KUBELET", Destination: "c:/k//kubelet.exe", SHA256: "AB"},
			{Name: "containerd", Destination: "bad", Overwrite: &no, Health: &Health{None: true, Settle: &Duration{0}}},
			{Name: "mine", Destination: `c:\folder/`, Health: &Health{CRIPipe: "npipe:////./pipe/mine"}},
		}},
	}}
	SetDefaults(&node)

	rules := []FirewallRule{
		{Name: "a", Direction: "in", Action: "allow", Protocol: "tcp", Ports: "any", Profiles: "any", Addresses: "any"},
		{Name: "b", Direction: "out", Action: "allow", Protocol: "tcp", Ports: "1", Profiles: "any", Addresses: "any"},
	}
	if diff := cmp.Diff(rules, node.Spec.Setup.Firewall); diff != "" {
		t.Errorf("firewall (-want +got):\n%s", diff)
	}
	yes := true
	second, minute, half := &Duration{time.Second}, &Duration{time.Minute}, &Duration{30 * time.Second}
	provisioners := []Provisioner{
		{Name: "KUBELET", Destination: `c:\k\kubelet.exe`, SHA256: "ab", Overwrite: &yes,
			Health: &Health{HTTPGet: "http://127.0.0.1:10248/healthz", Settle: second, Timeout: minute,
				StopTimeout: half}},
		{Name: "containerd", Destination: "bad", Overwrite: &no,
			Health: &Health{None: true, Settle: &Duration{0}, Timeout: minute, StopTimeout: half}},
		{Name: "mine", Destination: `c:\folder/`, Overwrite: &yes,
			Health: &Health{CRIPipe: `\\.\pipe\mine`, Settle: second, Timeout: minute, StopTimeout: half}},
	}
	if diff := cmp.Diff(provisioners, node.Spec.Kubernetes.Provisioners); diff != "" {
		t.Errorf("provisioners (-want +got):\n%s", diff)
	}

	again := node
	SetDefaults(&again)
	if !reflect.DeepEqual(node, again) {
		t.Error("setting the defaults twice changes something")
	}
}

func TestDefaultDependsOn(t *testing.T) {
	for name, want := range map[string][]string{"Kubelet": {"containerd"}, "kube-proxy": {"containerd"},
		"containerd": nil, "mine": nil} {
		if got := DefaultDependsOn(name); !slices.Equal(got, want) {
			t.Errorf("DefaultDependsOn(%s) = %v, want %v", name, got, want)
		}
	}
}

func TestDurationText(t *testing.T) {
	var d Duration
	if err := d.UnmarshalText([]byte("90s")); err != nil || d.Duration != 90*time.Second {
		t.Errorf("90s: got %v, %v", d, err)
	}
	if text, err := d.MarshalText(); err != nil || string(text) != "1m30s" {
		t.Errorf("got %s, %v, want 1m30s", text, err)
	}
	for _, wrong := range []string{"", "5", "1 m", "soon"} {
		if err := d.UnmarshalText([]byte(wrong)); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
