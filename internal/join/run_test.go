package join_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const staysCordoned = "warn: node win1 stays cordoned, since it may not work: `kubectl uncordon win1` when it does"

func TestRunDoesNotBeginAJoinThatWouldFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.put(`C:\etc\kubernetes\kubelet.conf`, "theirs")
		before := l.state()
		result, err := join.Run(t.Context(), l.Node.Node, l.doc, l.options(), l.story)
		var refused *join.RefusedError
		switch {
		case !errors.As(err, &refused):
			t.Fatalf("error = %v (%T), want a %T", err, err, refused)
		case !strings.Contains(err.Error(), "nothing was changed:\n  "):
			t.Fatalf("err.Error() lacks %q:\n%s", "nothing was changed:\n  ", err.Error())
		case len(result.Problems) == 0:
			t.Fatalf("len(result.Problems) = 0; %v, problems %+v", err, result.Problems)
		}
		if len(result.Steps) > 0 {
			t.Errorf("steps were run:\n%s", table(result.Steps))
		}
		if diff := cmp.Diff(before, l.state()); diff != "" {
			t.Errorf("the machine was changed (-before +after):\n%s", diff)
		}
	})
}

// The new kubelet works only in the second run: the node stays cordoned between them.
func TestRunDrainsTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		l.spec().Version = "1.36.4"
		options := l.options()
		options.Drain = &cluster.DrainOptions{}
		for _, works := range []bool{false, true} {
			delete(l.programs.fault, "kubelet")
			if !works {
				l.programs.fault["kubelet"] = simulated.CrashAtStart
			}
			l.story = &story{}
			result, err := join.Run(t.Context(), l.Node.Node, l.doc, options, l.story)
			if (err == nil) != works {
				t.Fatalf("kubelet works: %t, error %v\n%s", works, err, table(result.Steps))
			}
			if !strings.Contains(l.story.String(), "step: draining win1") {
				t.Errorf("it was not drained:\n%s", l.story)
			}
			if warned := strings.Contains(l.story.String(), staysCordoned); warned == works {
				t.Errorf("kubelet works: %t, warned %t:\n%s", works, warned, l.story)
			}
			n, err := l.cluster.Node(t.Context(), "win1")
			if err != nil || n.Cordoned == works {
				t.Errorf("kubelet works: %t, cordoned %t, %v", works, n.Cordoned, err)
			}
		}
	})
}

// If a reset fails before the node has left the cluster, its error names the command that
// uncordons the node.
func TestAResetThatFailsAfterTheDrain(t *testing.T) {
	tests := map[string]struct {
		cannotRemove string
		warns        bool
	}{
		"before the node left": {`C:\etc\kubernetes\kubelet.conf`, true},
		"after the node left":  {`C:\var\lib\kubelet`, false},
	}
	for name, test := range tests {
		subtest(t, name, func(t *testing.T) {
			l := newLab(t)
			l.mustJoin()
			denied := true
			l.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
				if denied && op.Kind == simulated.OpRemove && op.Phase == simulated.Before &&
					strings.EqualFold(op.Target, test.cannotRemove) {
					return simulated.Fail(fault.ErrPermission)
				}
				return simulated.Continue()
			})
			l.story = &story{}
			result, err := join.RunReset(t.Context(), l.Node.Node, l.doc, resetAll(l), l.story)
			if err == nil || !strings.Contains(err.Error(), test.cannotRemove) {
				t.Fatalf("%v\n%s", err, table(result.Steps))
			}
			if warned := strings.Contains(l.story.String(), staysCordoned); warned != test.warns {
				t.Errorf("warned %t:\n%s", warned, l.story)
			}
			denied = false
			if _, err := join.RunReset(t.Context(), l.Node.Node, l.doc, resetAll(l), l.story); err != nil {
				t.Errorf("the next reset: %v", err)
			}
			result, err = join.RunReset(t.Context(), l.Node.Node, l.doc, resetAll(l), l.story)
			if err != nil || result.Steps != nil {
				t.Errorf("a reset of nothing: %v\n%s", err, table(result.Steps))
			}
		})
	}
}
