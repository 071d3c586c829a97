package ability

import (
	"context"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui"
)

// nodeTest tests one Windows node, one probe after the other.
type nodeTest struct {
	*run
	node  cluster.Node
	index int // of the node, from 1, for the names of pods
	r     ui.Reporter

	free, limited *guest // nil: not made yet
}

// probe is one probe of a node.
type probe struct {
	name string
	run  func(ctx context.Context) error
}

// probes returns the probes in their order: those that disturb the node come last.
func (t *nodeTest) probes() []probe {
	return []probe{
		{CPULimit, t.cpuLimit},
		{MemoryLimit, t.memoryLimit},
		{SessionAffinity, t.sessionAffinity},
		{SourceAddress, t.sourceAddress},
		{NodePort, t.nodePort},
		{CSIVolume, func(ctx context.Context) error { return t.volume(ctx, "") }},
		{SMBVolume, func(ctx context.Context) error { return t.volume(ctx, smbDriver) }},
		{KubeletRestart, func(ctx context.Context) error { return t.restart(ctx, "kubelet") }},
		{ContainerdRestart, func(ctx context.Context) error { return t.restart(ctx, "containerd") }},
		{Reboot, t.reboot},
	}
}

// test runs the chosen probes.
func (t *nodeTest) test(ctx context.Context) (results []Result) {
	for _, p := range t.probes() {
		if !slices.Contains(t.Probes, p.name) {
			continue
		}
		begin := time.Now()
		t.r.Step("%s", p.name)
		done := Result{Node: t.node.Name, Build: t.node.KernelVersion, Probe: p.name}
		done.Result, done.Message = NotRun, "interrupted"
		if ctx.Err() == nil {
			done.Result, done.Message = resultOf(ctx, p.run(ctx))
		}
		if done.Seconds = time.Since(begin).Seconds(); done.Result != Proved {
			t.r.Warn("%s: %s: %s", p.name, ui.Words(done.Result), done.Message)
		}
		results = append(results, done)
	}
	return results
}
