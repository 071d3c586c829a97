package agent_test

import (
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// A reboot ends the agent, and the restarted machine is the same with a new
// boot id.
func (a installed) testReboot(t *testing.T) {
	p := a.start(t)
	before, err := p.Facts(t.Context(), &agentv1.FactsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.start(t).Facts(t.Context(), &agentv1.FactsRequest{}); err != nil ||
		again.GetBootId() != before.GetBootId() {
		t.Errorf("boot id %s, without a reboot %s, %v", before.GetBootId(), again.GetBootId(), err)
	}
	if _, err := p.Reboot(t.Context(), &agentv1.RebootRequest{Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	p.awaitExit(t)
	after, err := a.start(t).Facts(t.Context(), &agentv1.FactsRequest{})
	switch {
	case err != nil:
		t.Error(err)
	case after.GetBootId() == before.GetBootId():
		t.Errorf("after.GetBootId() is %v, want anything but %v", after.GetBootId(), before.GetBootId())
	case after.GetHostname() != before.GetHostname():
		t.Errorf("after.GetHostname() is %v, want %v", after.GetHostname(), before.GetHostname())
	}
}
