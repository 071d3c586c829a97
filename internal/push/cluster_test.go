package push

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// fakeCluster records the calls to it.
type fakeCluster struct {
	bench *bench
	log   []string
	gone  bool // the node does not exist
	ill   bool // the node is not Ready before the push
	uuid  string
	drain error // of Drain
	ready error // of AwaitNode
	stays error // of Uncordon
}

func (f *fakeCluster) did(format string, args ...any) {
	f.log = append(f.log, fmt.Sprintf(format, args...)+fmt.Sprintf(", %d swaps", len(f.bench.swap.plans)))
}

func (f *fakeCluster) Node(_ context.Context, name string) (cluster.Node, error) {
	f.did("look at %s", name)
	return cluster.Node{Name: name, Exists: !f.gone, Ready: !f.ill, SystemUUID: f.uuid}, nil
}

func (f *fakeCluster) AwaitNode(_ context.Context, name string, want cluster.Wanted, report func(string)) (
	cluster.Node, error) {
	f.did("await %s, ready %t", name, want.Ready)
	report("Ready is Unknown")
	return cluster.Node{}, f.ready
}

func (f *fakeCluster) Drain(_ context.Context, m cluster.Machine, _ cluster.DrainOptions,
	_ cluster.Reporter) (cluster.Drained, error) {
	f.did("drain %s", m.Node)
	if same, known := cluster.SameMachine(m.UUID, f.uuid); known && !same { // as *cluster.Cluster does
		return cluster.Drained{}, &cluster.OtherMachineError{Node: m.Node, UUID: f.uuid, Machine: m.UUID}
	}
	return cluster.Drained{Cordoned: f.drain == nil}, f.drain
}

func (f *fakeCluster) Uncordon(_ context.Context, name string) (bool, error) {
	f.did("uncordon %s", name)
	return f.stays == nil, f.stays
}

func TestPushInACluster(t *testing.T) {
	notReady := &cluster.NodeWaitError{Name: "win-1", Missing: []string{"Ready"}, Err: context.DeadlineExceeded}
	blocked := &cluster.DrainBlockedError{Node: "win-1", Pods: []cluster.BlockedPod{{Message: "budget"}}}
	tests := map[string]struct {
		cluster fakeCluster
		drain   bool
		result  Result
		log     []string
		swaps   int
		back    bool
	}{
		"ready": {
			result: Changed, swaps: 1,
			log: []string{"look at win-1, 0 swaps", "await win-1, ready true, 1 swaps"},
		},
		"drained": {
			drain: true, result: Changed, swaps: 1,
			log: []string{"look at win-1, 0 swaps", "drain win-1, 0 swaps", "await win-1, ready true, 1 swaps",
				"uncordon win-1, 1 swaps"},
		},
		"a budget forbids it": {
			cluster: fakeCluster{drain: blocked}, drain: true, result: Failed, swaps: 0,
			log: []string{"look at win-1, 0 swaps", "drain win-1, 0 swaps"},
		},
		"not ready": {
			cluster: fakeCluster{ready: notReady}, drain: true, result: RolledBack, swaps: 2, back: true,
			log: []string{"look at win-1, 0 swaps", "drain win-1, 0 swaps", "await win-1, ready true, 1 swaps",
				"uncordon win-1, 2 swaps"},
		},
		"nobody can tell": {
			cluster: fakeCluster{ready: errors.New("no API server")}, drain: true, result: Failed, swaps: 1,
			log: []string{"look at win-1, 0 swaps", "drain win-1, 0 swaps", "await win-1, ready true, 1 swaps"},
		},
		"stays cordoned": {
			cluster: fakeCluster{stays: errors.New("forbidden")}, drain: true, result: Failed, swaps: 1,
			log: []string{"look at win-1, 0 swaps", "drain win-1, 0 swaps", "await win-1, ready true, 1 swaps",
				"uncordon win-1, 1 swaps"},
		},
		"was not ready before": {
			cluster: fakeCluster{ill: true}, result: Changed, swaps: 1,
			log: []string{"look at win-1, 0 swaps", "await win-1, ready false, 1 swaps"},
		},
		"another machine": {
			cluster: fakeCluster{uuid: "11111111-0000-0000-0000-000000000000"}, result: Changed, swaps: 1,
			log: []string{"look at win-1, 0 swaps"},
		},
		"another machine is not drained": {
			cluster: fakeCluster{uuid: "11111111-0000-0000-0000-000000000000"}, drain: true, result: Failed, swaps: 0,
			log: []string{"look at win-1, 0 swaps", "drain win-1, 0 swaps"},
		},
		"a node of no cluster": {
			cluster: fakeCluster{gone: true}, drain: true, result: Changed, swaps: 1,
			log: []string{"look at win-1, 0 swaps"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := twoPrograms(t)
			before := b.node.Get(kubeletPath)
			b.doc.Node.Spec.Kubernetes.Join.NodeName = "win-1"
			api := test.cluster
			api.bench = b
			options := Options{Cluster: &api}
			if test.drain {
				options.Drain = &cluster.DrainOptions{}
			}
			result, err := b.push(t.Context(), options)
			if result.Result != test.result || (err == nil) != (test.result == Changed) {
				t.Errorf("result %s, %v, want %s", result.Result, err, test.result)
			}
			if diff := cmp.Diff(test.log, api.log); diff != "" {
				t.Errorf("the cluster was asked (-want +got):\n%s", diff)
			}
			if got := len(b.swap.plans); got != test.swaps {
				t.Errorf("%d transactions, want %d", got, test.swaps)
			}
			var back *RolledBackError
			if errors.As(err, &back) != test.back {
				t.Errorf("error: %v", err)
			}
			if same := slices.Equal(before, b.node.Get(kubeletPath)); same != (test.swaps != 1) {
				t.Errorf("the old kubelet stands there: %t", same)
			}
			if left := b.leftovers(); left != nil {
				t.Errorf("left over: %s", strings.Join(left, ", "))
			}
			b.unlocked()
		})
	}
}
