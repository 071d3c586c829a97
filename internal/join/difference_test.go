package join_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// A change of the node file causes exactly that change on the node.
func TestOnlyTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		for _, test := range []struct {
			name    string
			change  func(*v1alpha1.Kubernetes)
			steps   []string
			kubelet bool // restarted
			runtime bool
		}{
			{"a flag", func(k *v1alpha1.Kubernetes) { k.Kubelet.ExtraArgs = map[string]string{"v": "4"} },
				[]string{"kubelet service", "kubelet"}, true, false},
			{"a setting of kubelet", func(k *v1alpha1.Kubernetes) { k.Kubelet.ConfigPatch = map[string]any{"maxPods": 30} },
				[]string{"folders", "kubelet config", "kubelet service", "kubelet"}, true, false},
			{"another value of it", func(k *v1alpha1.Kubernetes) { k.Kubelet.ConfigPatch["maxPods"] = 40 },
				[]string{"kubelet config", "kubelet"}, true, false},
			{"no setting any more", func(k *v1alpha1.Kubernetes) { k.Kubelet.ConfigPatch = nil },
				[]string{"kubelet config", "kubelet service", "kubelet"}, true, false},
			{"a setting of containerd", func(k *v1alpha1.Kubernetes) { k.Containerd.PauseImage = "example.com/pause:1" },
				[]string{"containerd config", "containerd service", "kubelet"}, true, true},
			{"containerd's log level", func(k *v1alpha1.Kubernetes) { k.Containerd.LogLevel = "debug" },
				[]string{"containerd service", "kubelet"}, true, true},
			{"containerd", func(k *v1alpha1.Kubernetes) { k.Containerd.Version = "1.7.13" },
				[]string{"containerd files"}, true, true},
			{"containerd of another generation", func(k *v1alpha1.Kubernetes) { k.Containerd.Version = "2.4.2" },
				[]string{"containerd files"}, true, true},
			{"containerd of an older generation", func(k *v1alpha1.Kubernetes) { k.Containerd.Version = "1.7.12" },
				[]string{"containerd files"}, true, true},
			{"kubelet", func(k *v1alpha1.Kubernetes) { k.Version = "1.36.4" },
				[]string{"kubernetes files", "kubelet"}, true, false},
			{"a label that kubelet may not set", func(k *v1alpha1.Kubernetes) {
				k.Kubelet.NodeLabels = map[string]string{"node-role.kubernetes.io/worker": ""}
			}, []string{"node"}, false, false},
			{"no label", func(k *v1alpha1.Kubernetes) { k.Kubelet.NodeLabels = nil }, []string{"node"}, false, false},
			{"a taint", func(k *v1alpha1.Kubernetes) { k.Kubelet.RegisterWithTaints = []string{"os=windows:NoSchedule"} },
				[]string{"kubelet service", "kubelet", "node"}, true, false},
			{"no taint", func(k *v1alpha1.Kubernetes) { k.Kubelet.RegisterWithTaints = nil },
				[]string{"kubelet service", "kubelet", "node"}, true, false},
			{"a name", func(k *v1alpha1.Kubernetes) {
				k.Join.ControlPlaneAlias = &v1alpha1.ControlPlaneAlias{Name: "cp.example", IP: "10.0.0.1"}
			}, []string{"hosts file"}, false, false},
			{"another name", func(k *v1alpha1.Kubernetes) { k.Join.ControlPlaneAlias.Name = "api.example" },
				[]string{"hosts file"}, false, false},
			{"no name", func(k *v1alpha1.Kubernetes) { k.Join.ControlPlaneAlias = nil }, []string{"hosts file"},
				false, false},
		} {
			t.Log(test.name)
			kubelet, runtime := l.pid("kubelet"), l.pid("containerd")
			test.change(l.spec())
			results := l.mustJoin()
			if diff := cmp.Diff(test.steps, changed(results)); diff != "" {
				t.Errorf("other steps:\n%s%s", diff, table(results))
			}
			if got := l.pid("kubelet") != kubelet; got != test.kubelet {
				t.Errorf("kubelet was restarted: %v", got)
			}
			if got := l.pid("containerd") != runtime; got != test.runtime {
				t.Errorf("containerd was restarted: %v", got)
			}
			l.isReady()
			again, err := l.join()
			nothing(t, again, err)
		}
	})
}

func (l *lab) pid(service string) uint32 {
	l.t.Helper()
	reply, err := l.Services.Get(l.t.Context(), &agentv1.GetServiceRequest{Name: service})
	if err != nil {
		l.t.Fatal(err)
	}
	if reply.GetStatus().GetPid() == 0 {
		l.t.Fatalf("%s does not run", service)
	}
	return reply.GetStatus().GetPid()
}

func TestLabelsAndTaintsAreOnTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.spec().Kubelet.NodeLabels = map[string]string{"pool": "win", "node-role.kubernetes.io/worker": "",
			"topology.kubernetes.io/zone": "a"}
		l.spec().Kubelet.RegisterWithTaints = []string{"os=windows:NoSchedule", "slow:PreferNoSchedule"}
		l.mustJoin()
		n := l.isReady()
		for key, value := range l.spec().Kubelet.NodeLabels {
			if got, ok := n.Labels[key]; !ok || got != value {
				t.Errorf("label %s is %q", key, got)
			}
		}
		var taints []string
		for _, taint := range n.Taints {
			taints = append(taints, taint.ToString())
		}
		if text := strings.Join(taints, " "); !strings.Contains(text, "os=windows:NoSchedule") ||
			!strings.Contains(text, "slow:PreferNoSchedule") {
			t.Errorf("taints %s", text)
		}
		again, err := l.join()
		nothing(t, again, err)
	})
}

// A configuration of other origin is kept, and the reset restores it.
func TestForeignConfigurationIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		const toml = `C:\Program Files\containerd\config.toml`
		l.put(toml, "version = 2\n# mine\n")
		results := l.mustJoin()
		if got := l.get(toml + ".swdt-before"); got != "version = 2\n# mine\n" {
			t.Fatalf("kept %q\n%s", got, table(results))
		}
		before := l.get(toml)
		l.spec().Containerd.PauseImage = "example.com/pause:1"
		l.mustJoin() // swdt's own configuration does not replace the kept one
		if l.get(toml) == before || l.get(toml+".swdt-before") != "version = 2\n# mine\n" {
			t.Errorf("now %q", l.get(toml+".swdt-before"))
		}
		if results, err := l.resetWith(resetAll(l)); err != nil {
			t.Fatalf("%v\n%s", err, table(results))
		}
		if got := l.get(toml); got != "version = 2\n# mine\n" || l.get(toml+".swdt-before") != "" {
			t.Errorf("after the reset: %q", got)
		}
	})
}

// A reset restores the registration of a service that was there before the join.
func TestForeignServiceIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.put(`C:\tools\containerd.exe`,
			string(simulated.Binary(simulated.BinarySpec{Name: "containerd", Version: "v1.6.27"})))
		const theirs = `C:\tools\containerd.exe --run-service --log-file C:\tools\containerd.log`
		if _, err := l.Services.Create(t.Context(), &agentv1.ServiceConfig{Name: "containerd", CommandLine: theirs,
			StartType: agentv1.StartType_START_TYPE_MANUAL}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Services.Start(t.Context(), &agentv1.StartServiceRequest{Name: "containerd"}); err != nil {
			t.Fatal(err)
		}
		l.mustJoin()
		if n := l.isReady(); n.Runtime != "containerd://1.7.12" {
			t.Errorf("runs %s", n.Runtime)
		}
		if results, err := l.resetWith(resetAll(l)); err != nil {
			t.Fatalf("%v\n%s", err, table(results))
		}
		reply, err := l.Services.Get(t.Context(), &agentv1.GetServiceRequest{Name: "containerd"})
		switch {
		case err != nil:
			t.Errorf("unexpected error: %v", err)
		case reply.GetConfig().GetCommandLine() != theirs:
			t.Errorf("reply.GetConfig().GetCommandLine() = %v, want %v", reply.GetConfig().GetCommandLine(), theirs)
		case reply.GetConfig().GetStartType() != agentv1.StartType_START_TYPE_MANUAL:
			t.Errorf("reply.GetConfig().GetStartType() = %v, want manual; %v, %v", reply.GetConfig().GetStartType(),
				reply, err)
		}
	})
}

// A kubelet registers only when it starts.
func TestANodeThatWasDeletedIsRegisteredAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		if _, err := l.cluster.DeleteNode(t.Context(), "win1"); err != nil {
			t.Fatal(err)
		}
		results, err := l.join()
		if err != nil {
			t.Fatalf("%v\n%s", err, table(results))
		}
		if diff := cmp.Diff([]string{"kubelet"}, changed(results)); diff != "" {
			t.Errorf("steps that did something (-want +got):\n%s", diff)
		}
		l.isReady()
		results, err = l.join()
		nothing(t, results, err)
	})
}
