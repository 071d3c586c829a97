package vm_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/network"
)

func TestTheNetworkOfANodeFile(t *testing.T) {
	doc := document(t, "win-1", func(m *v1alpha1.Machine) {
		m.Network.Mode, m.Network.Bridge, m.Network.Address = network.Bridge, "kind", "172.18.200.1"
	})
	alias := v1alpha1.ControlPlaneAlias{Name: "kind-control-plane", IP: "172.18.0.2"}
	doc.Node.Spec.Kubernetes.Join.ControlPlaneAlias = &alias
	want := network.Wanted{
		Mode: network.Bridge, Bridge: "kind", Tap: network.TapName("win-1", network.Owner()), Owner: network.Owner(),
		Address: netip.MustParseAddr("172.18.200.1"),
		Alias:   network.Alias{Name: "kind-control-plane", Address: netip.MustParseAddr("172.18.0.2")},
	}
	if diff := cmp.Diff(want, vm.WantedNetwork(doc), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	doc.Node.Spec.Machine.Network.Tap = "mine"
	if got := vm.WantedNetwork(doc); got.Tap != "mine" {
		t.Errorf("the tap is %s", got.Tap)
	}
}

// The steps of each VM are printed with their state, and root's part as a command.
func TestStepsOfNetworks(t *testing.T) {
	step := func(name string, state plan.State, message string) plan.StepResult {
		r := plan.StepResult{Name: name, State: state, Message: message}
		if state != plan.OK {
			r.Change, r.Detail = "make the "+name, "a command"
		}
		return r
	}
	broken := errors.New("broken")
	result := func(name string, needRoot bool, err error, steps ...plan.StepResult) fleet.Result[network.Results] {
		return fleet.Result[network.Results]{
			Document: document(t, name), Value: network.Results{Steps: steps, NeedRoot: needRoot}, Err: err,
		}
	}
	steps := vm.NewNetworkSteps([]fleet.Result[network.Results]{
		result("done", false, nil, step("docker network", plan.OK, "it is there"), step("tap", plan.Changed, "")),
		result("root", true, nil, step("tap", plan.Skipped, "it needs root's rights")),
		result("dry", false, nil, step("tap", plan.Skipped, "dry run")),
		result("bad", false, broken, step("tap", plan.Failed, "broken")),
	}, func(name string) []string { return []string{"sudo", "prepare", name} })
	var text strings.Builder
	check(t, steps.WriteText(ui.NewPage(&text, false), func(words []string) string { return strings.Join(words, " ") }))
	const want = `done: docker network: nothing to do: it is there
done: tap: done: make the tap
root: tap: to do: make the tap (it needs root's rights)
Root's rights are needed once, until this machine restarts. Root makes the tap device and puts it on
the bridge, so that your VM can use it without root:
  sudo prepare root
dry: tap: would make the tap: a command
bad: tap: failed: make the tap
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var results []string
	for _, v := range steps.VMs {
		results = append(results, v.Name+" "+string(v.Result))
	}
	if diff := cmp.Diff([]string{"done changed", "root unchanged", "dry unchanged", "bad failed"}, results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}
