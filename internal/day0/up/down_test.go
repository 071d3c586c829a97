package up

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
)

// errInterrupted is the reason of a connection that fails, since the user interrupts down meanwhile.
var errInterrupted = errors.New("interrupted")

// downWithout runs Down for an existing cluster whose only node cannot be reached for the reason err,
// and returns the report and the joins that the record still has.
func downWithout(t *testing.T, err error, noDrain bool) (Report, []string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, doc, o := existingCluster(t, "")
	n := open(t, o.Records)
	if err := n.change(func(r *record) { r.Nodes = []string{"win"} }); err != nil {
		t.Fatal(err)
	}
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
	o.NoDrain = noDrain
	o.Confirm = func(context.Context, []string) error { return nil }
	o.Connect = func(context.Context, config.Document, ui.Reporter) (*node.Node, error) {
		if errors.Is(err, errInterrupted) {
			cancel()
		}
		return nil, &node.UnreachableError{Node: "win", Err: err}
	}
	var document config.Document
	document.Node.Metadata.Name = "win"
	document.Node.Spec.Kubernetes.Join.NodeName = "win-2022"
	report, failed := Down(ctx, doc, []config.Document{document}, o)
	n = open(t, o.Records)
	defer n.close()
	return report, n.now().Nodes, failed
}

func TestNodesThatDoNotAnswer(t *testing.T) {
	for _, err := range []error{
		&ssh.RefusedError{}, &ssh.TimeoutError{}, &ssh.NoRouteError{}, &ssh.NameError{}, &ssh.DialError{},
		fmt.Errorf("look at the VM: %w", &vm.NotRunningError{Name: "win"}),
	} {
		if _, left, failed := downWithout(t, err, false); failed == nil || len(left) != 1 {
			t.Errorf("%T: down without --no-drain: %v, joins %q", err, failed, left)
		}
		report, left, failed := downWithout(t, err, true)
		if failed != nil || len(left) != 0 {
			t.Errorf("%T: %v, joins %q", err, failed, left)
		}
		want := []string{
			"cluster dev, which swdt did not make",
			"the join on win, which does not answer: `swdt reset --no-drain -n win` removes it once the node answers",
			"the Node of win in the cluster: `kubectl delete node win-2022` removes it",
		}
		if diff := cmp.Diff(want, report.Kept); diff != "" {
			t.Errorf("%T: (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff([]string{"join of win: changed it does not answer: its join was not undone"},
			results(report.Stages)); diff != "" {
			t.Errorf("%T: (-want +got):\n%s", err, diff)
		}
	}
}

// A machine that answers in the node's place, or that refuses the user, does not make down forget the
// node. Nor does an interruption, after which every connection fails.
func TestOtherMachinesAreNotSilentNodes(t *testing.T) {
	for _, err := range []error{
		&ssh.HostKeyChangedError{}, &ssh.HostKeyUnknownError{}, &ssh.AuthError{}, &ssh.HandshakeError{},
		&node.NotWindowsError{}, &ssh.KeyFileError{Err: errors.New("no such file")},
		&ssh.TimeoutError{Err: errInterrupted},
	} {
		report, left, failed := downWithout(t, err, true)
		if failed == nil || len(left) != 1 {
			t.Errorf("%T: %v, joins %q, kept %q", err, failed, left, report.Kept)
		}
	}
}
