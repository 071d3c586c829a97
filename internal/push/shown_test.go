package push

import (
	"errors"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// A reason on the component's line is not printed a second time. A reason of which the line has
// only a part is printed in full.
func TestShownErrorIsOnlyTheAftermath(t *testing.T) {
	back := &RolledBackError{Outcome: &agentv1.SwapOutcome{
		Result: agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK, FailedComponent: "kubelet", Message: "not healthy",
		Components: []*agentv1.ComponentOutcome{{Name: "kubelet", LogLines: []string{"boom"}}},
	}}
	refused := errors.New("kubelet: no Windows program")
	for name, test := range map[string]struct {
		component ComponentResult
		err       error
		want      string
	}{
		"rolled back": {ComponentResult{Name: "kubelet", Message: "not healthy", cause: true}, back,
			"kubelet failed; the node is back to the previous binaries\nits last log lines:\n  boom"},
		"refused": {ComponentResult{Name: "kubelet", Message: "no Windows program", cause: true}, refused,
			"kubelet failed: see its line"},
		"several lines": {ComponentResult{Name: "kubelet", Message: "no\nprogram", cause: true},
			refused, refused.Error()},
		"not of this component": {ComponentResult{Name: "kubelet", Message: "it waited"}, refused, refused.Error()},
	} {
		got := Shown(NodeResult{Components: []*ComponentResult{&test.component}}, test.err)
		if got.Error() != test.want || !errors.Is(got, test.err) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	both := NodeResult{Components: []*ComponentResult{{Name: "containerd", Message: "it is missing", cause: true},
		{Name: "kubelet", Message: "it is missing", cause: true}}}
	if got, want := Shown(both, refused).Error(), "containerd and kubelet failed: see their lines"; got != want {
		t.Errorf("two failed components: %q, want %q", got, want)
	}
	both.Components[1].Message = "it\nis missing"
	if got := Shown(both, refused); got != refused {
		t.Errorf("of which one has several lines: %q, want %q", got, refused)
	}
	if Shown(NodeResult{}, nil) != nil {
		t.Error("an error without a failure")
	}
}
