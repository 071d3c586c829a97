package deploy

import (
	"errors"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// A reason that stands on the component's line is not said a second time, and one of
// which the line has a part only is not lost.
func TestToldIsOnlyWhatCameOfIt(t *testing.T) {
	back := &RolledBackError{Outcome: &agentv1.SwapOutcome{
		Result: outcomeRolledBack, FailedComponent: "kubelet", Message: "not healthy",
		Components: []*agentv1.ComponentOutcome{{Name: "kubelet", LogLines: []string{"boom"}}},
	}}
	refused := errors.New("kubelet: no Windows program")
	for name, test := range map[string]struct {
		component ComponentResult
		err       error
		want      string
	}{
		"rolled back":           {ComponentResult{Name: "kubelet", Message: "not healthy", cause: true}, back, "kubelet failed; the node is back to the previous binaries\nits last log lines:\n  boom"},
		"refused":               {ComponentResult{Name: "kubelet", Message: "no Windows program", cause: true}, refused, "kubelet failed, as its line says"},
		"several lines":         {ComponentResult{Name: "kubelet", Message: "no\nprogram", cause: true}, refused, refused.Error()},
		"not of this component": {ComponentResult{Name: "kubelet", Message: "it waited"}, refused, refused.Error()},
	} {
		got := Told(NodeResult{Components: []*ComponentResult{&test.component}}, test.err)
		if got.Error() != test.want || !errors.Is(got, test.err) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if Told(NodeResult{}, nil) != nil {
		t.Error("an error of nothing")
	}
}
