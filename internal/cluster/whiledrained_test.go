package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// drainer records the calls of WhileDrained.
type drainer struct {
	log        []string
	notOurs    bool
	cannot     error // error of Drain
	stays      error // error of Uncordon
	unlimited  bool  // Uncordon was called without a deadline
	overBefore bool  // Uncordon was called with a context that had ended
}

func (d *drainer) Drain(context.Context, cluster.Machine, cluster.DrainOptions,
	cluster.Reporter) (cluster.Drained, error) {
	d.log = append(d.log, "drain")
	return cluster.Drained{Cordoned: d.cannot == nil && !d.notOurs}, d.cannot
}

func (d *drainer) Uncordon(ctx context.Context, _ string) (bool, error) {
	d.log = append(d.log, "uncordon")
	_, limited := ctx.Deadline()
	d.unlimited, d.overBefore = !limited, ctx.Err() != nil
	return true, d.stays
}

func TestWhileDrained(t *testing.T) {
	blocked, refused := errors.New("a budget forbids it"), errors.New("forbidden")
	broken := errors.New("kubelet does not start")
	const (
		mayNotWork = "node win-1 stays cordoned, since it may not work: `kubectl uncordon win-1` when it does"
		cannot     = "node win-1 stays cordoned: forbidden; `kubectl uncordon win-1`"
	)
	tests := map[string]struct {
		drainer   drainer
		fails     error
		usable    bool
		interrupt bool
		log       []string
		warnings  []string
		err       string
	}{
		"done":             {log: []string{"drain", "change", "uncordon"}},
		"not drained":      {drainer: drainer{cannot: blocked}, log: []string{"drain"}, err: blocked.Error()},
		"another's cordon": {drainer: drainer{notOurs: true}, log: []string{"drain", "change"}},
		"another's cordon, then a fault": {drainer: drainer{notOurs: true}, fails: broken,
			log: []string{"drain", "change"}, err: broken.Error()},
		"the node may not work": {fails: broken, log: []string{"drain", "change"},
			warnings: []string{mayNotWork}, err: broken.Error()},
		"failed, and it works": {fails: broken, usable: true, log: []string{"drain", "change", "uncordon"},
			err: broken.Error()},
		"failed, works, stays cordoned": {drainer: drainer{stays: refused}, fails: broken, usable: true,
			log: []string{"drain", "change", "uncordon"}, warnings: []string{cannot}, err: broken.Error()},
		"done, and stays cordoned": {drainer: drainer{stays: refused},
			log: []string{"drain", "change", "uncordon"}, err: cannot},
		"done, and interrupted meanwhile": {interrupt: true, log: []string{"drain", "change", "uncordon"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			d, reports := test.drainer, &story{}
			options := cluster.DrainOptions{Timeout: time.Minute, Usable: func(error) bool { return test.usable }}
			err := cluster.WhileDrained(ctx, &d, cluster.Machine{Node: "win-1"}, options, reports, func(context.Context) error {
				d.log = append(d.log, "change")
				if test.interrupt {
					cancel()
				}
				return test.fails
			})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(test.err, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.log, d.log); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.warnings, reports.infos); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if d.unlimited || d.overBefore {
				t.Errorf("uncordoned without a deadline: %t, with a context that had ended: %t", d.unlimited, d.overBefore)
			}
		})
	}
}

func TestSameMachine(t *testing.T) {
	tests := map[string]struct {
		a, b        string
		same, known bool
	}{
		"same, in another case": {"4c4c-AB", "4C4C-ab", true, true},
		"another":               {"4c4c", "5d5d", false, true},
		"one unknown":           {"4c4c", "", false, false},
		"both unknown":          {"", "", false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if same, known := cluster.SameMachine(test.a, test.b); same != test.same || known != test.known {
				t.Errorf("SameMachine = %t, %t, want %t, %t", same, known, test.same, test.known)
			}
		})
	}
}
