package sample_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/sample"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/platform/imitation/criserver"
)

// processList is a node's answer, whose time a test advances.
type processList struct {
	taken time.Time
	list  []*agentv1.Process
	err   error
}

func (p *processList) List(context.Context, *agentv1.ListProcessesRequest,
	...grpc.CallOption) (*agentv1.ListProcessesReply, error) {
	return &agentv1.ListProcessesReply{Taken: timestamppb.New(p.taken), Processes: p.list}, p.err
}

// pass advances the time; the first process uses this number of cores meanwhile.
func (p *processList) pass(by time.Duration, cores float64) {
	p.taken = p.taken.Add(by)
	used := p.list[0].GetCpu().AsDuration() + time.Duration(cores*float64(by))
	p.list[0].Cpu = durationpb.New(used)
}

func process(pid uint32, started time.Time, cpu time.Duration) *agentv1.Process {
	return &agentv1.Process{Pid: pid, Started: timestamppb.New(started), Cpu: durationpb.New(cpu), MemoryBytes: 21 << 20}
}

// aPod returns a pod with one container, created at this time, with this process.
func aPod(created time.Time, pid uint32) criserver.Workload {
	return criserver.Workload{Pods: []criserver.Pod{{
		ID: "pod", Name: "burner", Namespace: "default", Created: created,
		Containers: []criserver.Container{{ID: "container", Name: "burn", PID: pid}},
	}}}
}

func runtimeOf(t *testing.T, workload criserver.Workload) *criclient.Client {
	return serveWorkload(t, "v1.7.12", workload)
}

// The rate is the node's own counter over the node's own time, so the latency of its
// answers does not affect it.
func TestNodeRateIsItsOwnCounter(t *testing.T) {
	began := time.Date(2024, 1, 22, 19, 48, 13, 0, time.UTC)
	processes := &processList{taken: began.Add(time.Hour), list: []*agentv1.Process{
		process(44, began.Add(time.Second), 10*time.Minute), process(48, began, time.Hour),
	}}
	node := sample.NewNode(runtimeOf(t, aPod(began, 44)).Runtime, processes, 4)
	follower := stats.NewFollower(stats.DefaultTolerance)
	var last stats.Row
	for i := range 3 {
		if i > 0 {
			processes.pass(5*time.Second, 0.3)
		}
		samples, cores, err := node.Ask(t.Context())
		only(t, samples, cores, err)
		rows := follower.Add(stats.Reading{Source: stats.Node, Received: time.Now(), Cores: cores, Samples: samples})
		last = rows[0]
	}
	if got := last.Key.Container.Path(); got != "default/burner/burn" {
		t.Errorf("container %s, want default/burner/burn", got)
	}
	want := stats.Point{Taken: began.Add(time.Hour + 10*time.Second), Received: last.Point.Received,
		Memory: new(uint64(21 << 20)), Counter: new(uint64(10*time.Minute + 3*time.Second))}
	if diff := cmp.Diff(want, last.Point); diff != "" {
		t.Errorf("the point differs (-want +got):\n%s", diff)
	}
	if last.Computed == nil {
		t.Fatal("no rate was computed")
	}
	if math.Abs(*last.Computed-0.3) > 1e-9 {
		t.Errorf("computed %v, want 0.3", *last.Computed)
	}
	if len(last.Verdicts) > 0 {
		t.Errorf("verdicts %v, want none", last.Verdicts)
	}
}

func TestNumberOfAnotherProcess(t *testing.T) {
	began := time.Date(2024, 1, 22, 19, 48, 13, 0, time.UTC)
	for _, test := range []struct {
		what    string
		started time.Time
		want    int
	}{
		{"started with its container", began, 1},
		{"by a clock that is a little off", began.Add(-time.Second), 1},
		{"long before the container, as what has the number of a process in a virtual machine", began.Add(-time.Hour), 0},
	} {
		t.Run(test.what, func(t *testing.T) {
			processes := &processList{taken: began.Add(time.Hour),
				list: []*agentv1.Process{process(44, test.started, time.Minute)}}
			samples, _, err := sample.NewNode(runtimeOf(t, aPod(began, 44)).Runtime, processes, 4).Ask(t.Context())
			if err != nil || len(samples) != test.want {
				t.Errorf("%+v, %v", samples, err)
			}
		})
	}
}

func TestNodeWithoutProcessesIsAnError(t *testing.T) {
	broken := errors.New("broken")
	source := sample.NewNode(runtimeOf(t, aPod(time.Now(), 44)).Runtime, &processList{err: broken}, 4)
	if _, _, err := source.Ask(t.Context()); !errors.Is(err, broken) {
		t.Errorf("no list of processes: %v", err)
	}
	source = sample.NewNode(runtimeOf(t, aPod(time.Now(), 0)).Runtime, &processList{}, 4)
	if samples, _, err := source.Ask(t.Context()); err == nil {
		t.Errorf("got %v without a process, want an error", samples)
	}
	source = sample.NewNode(runtimeOf(t, criserver.Workload{}).Runtime, &processList{}, 4)
	if samples, _, err := source.Ask(t.Context()); err != nil || len(samples) > 0 {
		t.Errorf("no container: %v, %v", samples, err)
	}
}
