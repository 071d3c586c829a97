package push

import (
	"slices"
	"strings"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// withStopped returns a bench whose file has kubelet before containerd, with these services stopped.
func withStopped(t *testing.T, stopped ...string) *bench {
	b := twoPrograms(t)
	slices.Reverse(b.doc.Node.Spec.Kubernetes.Provisioners)
	b.swap.answer = func(s *agentv1.ComponentState) {
		if slices.Contains(stopped, s.GetName()) {
			s.Service.State, s.Service.Pid, s.Running = agentv1.ServiceState_SERVICE_STATE_STOPPED, 0, nil
		}
	}
	for name, path := range map[string]string{"containerd": containerdPath, "kubelet": kubeletPath} {
		_, err := b.node.Node.Services.Create(t.Context(), &agentv1.ServiceConfig{Name: name, CommandLine: `"` + path + `"`})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// A stopped service starts under the lock, before the transaction restarts those that need it.
func TestRestartStartsStoppedServicesFirst(t *testing.T) {
	b := withStopped(t, "containerd")
	b.swap.onRun = func() { b.running("containerd") }
	result, err := b.restart("containerd", "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	b.unlocked()
	kubelet, containerd := result.Components[0], result.Components[1]
	switch {
	case kubelet.Action != ActionRestarted || containerd.Action != ActionStarted || result.Result != Changed:
		t.Errorf("%s, kubelet %s, containerd %s", result.Result, kubelet.Action, containerd.Action)
	case containerd.Service.State != "running":
		t.Errorf("containerd is %s", containerd.Service.State)
	}
	if parts := b.swap.plans[0].GetComponents(); len(parts) != 1 || parts[0].GetName() != "kubelet" {
		t.Errorf("the transaction has %v, want kubelet alone", parts)
	}
}

func TestRestartStartsInTheOrderOfDependencies(t *testing.T) {
	b := withStopped(t, "containerd", "kubelet")
	result, err := b.restart("kubelet", "containerd")
	if want := []string{"starting containerd", "starting kubelet"}; err != nil || !slices.Equal(b.story.steps, want) {
		t.Errorf("%q, want %q: %v", b.story.steps, want, err)
	}
	if result.Result != Changed || len(b.swap.plans) > 0 {
		t.Errorf("%s with the transactions %v", result.Result, b.swap.plans)
	}
	b.unlocked()
}

func TestRestartShowsTheStartInADryRun(t *testing.T) {
	b := withStopped(t, "kubelet")
	w := b.work(Options{DryRun: true})
	result, err := w.finish(w.restart(t.Context(), []string{"kubelet"}))
	if err != nil || result.Components[0].Action != ActionStarted || result.Result != Changed || len(b.story.steps) > 0 {
		t.Errorf("%s, %+v, steps %q, %v", result.Result, result.Components[0], b.story.steps, err)
	}
	if row := strings.Join(result.Components[0].row(true), " "); !strings.Contains(row, "would be started") {
		t.Errorf("the row is %q", row)
	}
}

// A service of a restart has no files, and its story names none.
func TestStoryOfARestart(t *testing.T) {
	b := withStopped(t)
	if _, err := b.restart("kubelet"); err != nil {
		t.Fatal(err)
	}
	if b.story.steps[0] != "restarting" {
		t.Errorf("the steps are %q", b.story.steps)
	}
	f := &following{work: b.work(Options{}), noFiles: true}
	before := len(b.story.steps)
	f.report(&agentv1.SwapEvent{State: agentv1.SwapState_SWAP_STATE_SWAPPING, Component: "kubelet"})
	f.report(&agentv1.SwapEvent{State: agentv1.SwapState_SWAP_STATE_SWAPPED})
	f.report(&agentv1.SwapEvent{State: agentv1.SwapState_SWAP_STATE_STARTING, Component: "kubelet"})
	if got := b.story.steps[before:]; !slices.Equal(got, []string{"starting kubelet"}) {
		t.Errorf("the steps are %q", got)
	}
}

// A service without a provisioner is restarted by the command for that.
func TestHintOfAnOlderProcessNamesRestart(t *testing.T) {
	c := newComponent(v1alpha1.Provisioner{Name: "kube-proxy"})
	c.joined = true
	if got := c.restartHint(); got != "its process is older than the file: `swdt restart kube-proxy` restarts it" {
		t.Error(got)
	}
}
