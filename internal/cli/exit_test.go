package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

func nodes(errs ...error) error {
	e := &fleet.Error{Total: len(errs)}
	for i, err := range errs {
		if err != nil {
			e.Failed = append(e.Failed, fleet.Failure{Name: fmt.Sprint("n", i), Err: err})
		}
	}
	return e
}

func rolledBack(result agentv1.SwapResult) error {
	return &push.RolledBackError{Outcome: &agentv1.SwapOutcome{Result: result, Message: "kubelet crashed"}}
}

func TestExitCodes(t *testing.T) {
	unreachable := &node.UnreachableError{Node: "n0", Err: errors.New("refused")}
	failed := errors.New("disk full")
	for name, c := range map[string]struct {
		err  error
		code int
	}{
		"done":                {nil, 0},
		"anything else":       {failed, 1},
		"usage":               {usagef("no such flag"), 2},
		"config, wrapped":     {fmt.Errorf("load: %w", &config.Error{}), 2},
		"unreachable":         {nodes(unreachable), 3},
		"rolled back":         {nodes(rolledBack(agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK)), 4},
		"rolled back in part": {nodes(rolledBack(agentv1.SwapResult_SWAP_RESULT_FAILED)), 4},
		"a program's own":     {&exitError{code: 42}, 42},
		"all alike":           {nodes(unreachable, nil, unreachable), 3},
		"in different ways": {nodes(unreachable, rolledBack(agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK),
			failed), 1},
		"programs that agree":         {nodes(&exitError{code: 9}, &exitError{code: 9}), 9},
		"a program and an absent one": {nodes(&exitError{code: 9}, unreachable), 1},
		"the node is at work":         {nodes(&push.InterruptedError{Err: &timeoutError{flag: "5s"}}), 6},
		"lost while it was at work":   {nodes(&push.InterruptedError{Err: unreachable}), 6},
		"lost after it was reached":   {nodes(&node.LostError{Node: "n0"}), 1},
	} {
		var out bytes.Buffer
		a := &app{streams: ui.Streams{Err: &out}}
		if got := a.finish(t.Context(), c.err); got != c.code {
			t.Errorf("%s: exit code %d, want %d", name, got, c.code)
		}
		if text := out.String(); text != "" && (!strings.HasPrefix(text, "swdt: ") || !strings.HasSuffix(text, "\n")) {
			t.Errorf("%s: printed %q", name, text)
		}
	}
}

func TestInterruptedWinsOverWhatItCaused(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&InterruptedError{Signal: "interrupt"})
	for want, err := range map[string]error{
		"swdt: interrupted\n": nodes(context.Canceled),
		"swdt: interrupted; the node finishes the transaction by itself, `swdt status` shows how it ended\n": nodes(
			&push.InterruptedError{Err: context.Canceled}),
	} {
		var out bytes.Buffer
		a := &app{streams: ui.Streams{Err: &out}}
		if code := a.finish(ctx, err); code != 130 || out.String() != want {
			t.Errorf("exit code %d, printed %q", code, out.String())
		}
	}
}

func TestANodeIsNamedOnce(t *testing.T) {
	refused := func(name string) error { return &node.UnreachableError{Node: name, Err: errors.New("refused")} }
	lost := &node.LostError{Node: "n1", Err: errors.New("reset")}
	for want, err := range map[string]error{
		"2 of 2 nodes failed:\n  n0: refused\n  n1: disk full\n    second line": nodes(refused("n0"),
			errors.New("disk full\nsecond line")),
		"2 of 2 nodes failed:\n  n0: kubelet: refused\n" +
			"  n1: kubelet: send: lost the connection to the node's agent: reset": nodes(
			fmt.Errorf("kubelet: %w", refused("n0")), fmt.Errorf("kubelet: send: %w", lost)),
		"2 of 2 nodes failed:\n  n0: look at the node: refused\n  n1: containerd log: refused": nodes(
			fmt.Errorf("look at the node: %w", refused("n0")),
			&plan.FailedError{Steps: []string{"containerd log"}, Errs: []error{refused("n1")}}),
		"2 of 2 nodes failed:\n  n0: kubelet crashed; the node is back to the previous binaries\n  n1: refused: " +
			"the node finishes the transaction by itself; `swdt status` shows how it ended": nodes(
			rolledBack(agentv1.SwapResult_SWAP_RESULT_ROLLED_BACK), &push.InterruptedError{Err: refused("n1")}),
		"n0: kubelet: refused": nodes(fmt.Errorf("kubelet: %w", refused("n0"))),
	} {
		if text := new(app).message(err); text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}

// An error beside those of the nodes, or beside a command whose exit code swdt passes on,
// is printed too.
func TestNothingIsLostOfSeveralErrors(t *testing.T) {
	full := errors.New("disk full")
	for want, err := range map[string]error{
		"n0: refused\ndisk full": errors.Join(nodes(&node.UnreachableError{Node: "n0", Err: errors.New("refused")}),
			full),
		"disk full":        errors.Join(&exitError{code: 7}, full),
		"found\ndisk full": errors.Join(&exitError{code: exitFinding, err: errors.New("found")}, full),
		"":                 errors.Join(&exitError{code: 7}),
	} {
		if text := new(app).message(err); text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}

func TestTimeoutIsNamed(t *testing.T) {
	a := &app{global: globalOptions{timeout: 1}}
	ctx, cancel := a.global.bounded(t.Context())
	defer cancel()
	<-ctx.Done()
	err := explain(ctx, fmt.Errorf("wait for kubelet: %w", ctx.Err()))
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("error = %v, want %v", err, context.DeadlineExceeded)
	case !strings.Contains(err.Error(), "--timeout 1ns"):
		t.Errorf("err.Error() lacks %q:\n%s", "--timeout 1ns", err.Error())
	case !strings.Contains(err.Error(), "wait for kubelet"):
		t.Errorf("err.Error() lacks %q:\n%s; got %v", "wait for kubelet", err.Error(), err)
	}
	if again := explain(ctx, err); again != err {
		t.Errorf("explained twice: %v", again)
	}
}
