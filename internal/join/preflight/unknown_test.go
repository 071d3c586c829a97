package preflight

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func TestErrorsThatAreIgnored(t *testing.T) {
	for _, ignore := range []string{"elevated", "Elevated", "all", "ALL"} {
		f := healthy()
		f.node.machine.Elevated = false
		r := f.report([]string{"Swap", ignore})
		switch {
		case r.Failed():
			t.Errorf("r.Failed() is wrong; %s: %+v", ignore, r.Problems)
		case len(r.Problems) != 1:
			t.Errorf("len(r.Problems) = %v, want 1: %+v", len(r.Problems), r.Problems)
		case r.Problems[0].Severity != finding.Warning:
			t.Errorf("r.Problems[0].Severity = %v, want %v", r.Problems[0].Severity, finding.Warning)
		case !r.Problems[0].Ignored:
			t.Errorf("r.Problems[0].Ignored = false, want true; %s: %+v", ignore, r.Problems)
		}
	}
	f := healthy()
	f.node.machine.Elevated = false
	if r := f.report([]string{"memory"}); !r.Failed() || r.Problems[0].Ignored {
		t.Errorf("another one is ignored: %+v", r.Problems)
	}
}

func TestUnknownFacts(t *testing.T) {
	f := healthy()
	f.node.features.err = fault.ErrNotSupported
	f.node.listeners.err = fault.ErrPermission
	r := f.report(nil)
	if len(r.Problems) != 1 || !problemIs(r.Problems[0], "ports warning: could not look at kubelet's ports") {
		t.Errorf("%+v", r.Problems)
	}
	if len(r.Skipped) != 3 || len(r.Checks) != len(Checks())-3 {
		t.Errorf("skipped %+v", r.Skipped)
	}
}

func TestOneSideOnly(t *testing.T) {
	f := healthy()
	f.cluster = nil
	switch r := f.report(nil); {
	case len(r.Problems) > 0:
		t.Errorf("len(r.Problems) = %v, want 0: %+v", len(r.Problems), r.Problems)
	case r.NodeName != "win-1":
		t.Errorf("r.NodeName = %q, want %q", r.NodeName, "win-1")
	case r.Windows != "ltsc2022":
		t.Errorf("r.Windows = %q, want %q", r.Windows, "ltsc2022")
	case len(r.Checks) != len(nodeChecks())-1:
		t.Errorf("len(r.Checks) is wrong; the node alone: %+v", r)
	}
	f = healthy()
	f.node = nil
	f.cluster.namesake.err = errNoName
	switch r := f.report(nil); {
	case len(r.Problems) > 0:
		t.Errorf("len(r.Problems) = %v, want 0: %+v", len(r.Problems), r.Problems)
	case len(r.Skipped) != 1:
		t.Errorf("len(r.Skipped) = %v, want 1: %+v", len(r.Skipped), r.Skipped)
	case r.Windows != "":
		t.Errorf("r.Windows = %q, want %q; the cluster alone: %+v", r.Windows, "", r)
	}
}

func TestTargets(t *testing.T) {
	for name, test := range map[string]struct {
		join   v1alpha1.Join
		server string // in cluster-info
		want   []target
	}{
		"the kubeconfig's": {want: []target{{what: "the kubeconfig's server", address: "cp.example:6443"}}},
		"two names": {server: "https://kind-control-plane:6443", want: []target{
			{what: "the kubeconfig's server", address: "cp.example:6443"},
			{what: "the server in ConfigMap kube-public/cluster-info", address: "kind-control-plane:6443"},
		}},
		"another endpoint": {join: v1alpha1.Join{ControlPlaneEndpoint: "10.0.0.1"}, server: "https://10.0.0.1:6443",
			want: []target{
				{what: "spec.kubernetes.join.controlPlaneEndpoint", address: "10.0.0.1:6443"},
			}},
		"an alias": {join: v1alpha1.Join{ControlPlaneAlias: &v1alpha1.ControlPlaneAlias{Name: "CP.example",
			IP: "10.0.0.9"}}, want: []target{
			{what: "the kubeconfig's server", address: "cp.example:6443", planned: "10.0.0.9"},
		}},
		"a port of its own": {server: "https://cp.example", want: []target{
			{what: "the kubeconfig's server", address: "cp.example:6443"},
			{what: "the server in ConfigMap kube-public/cluster-info", address: "cp.example:443"},
		}},
	} {
		f := healthy()
		f.spec.Join = test.join
		f.cluster.info.value.Server = test.server
		if got := f.targets(); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// The node file's flags of kubelet name its ports, and override the fields of its configuration.
func TestPortsOfFlags(t *testing.T) {
	for name, test := range map[string]struct {
		kubelet v1alpha1.Kubelet
		want    []string
	}{
		"flags":    {v1alpha1.Kubelet{ExtraArgs: map[string]string{"port": "20250", "healthz-port": "20248"}}, nil},
		"fields":   {v1alpha1.Kubelet{ConfigPatch: map[string]any{"port": 20250, "healthzPort": 20248}}, nil},
		"defaults": {v1alpha1.Kubelet{}, []string{"ports", "ports"}},
		"the flag overrides the field": {v1alpha1.Kubelet{ExtraArgs: map[string]string{"port": "10250"},
			ConfigPatch: map[string]any{"port": 20250, "healthzPort": 20248}}, []string{"ports"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			f.node.listeners.value = []Listener{{Port: 10250, PID: 900, Process: "nginx.exe"},
				{Port: 10248, PID: 900, Process: "nginx.exe"}}
			f.spec.Kubelet = test.kubelet
			var got []string
			for _, p := range f.report(nil).Problems {
				got = append(got, p.Check)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the checks with problems differ (-want +got):\n%s", diff)
			}
		})
	}
}
