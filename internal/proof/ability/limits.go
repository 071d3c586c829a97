package ability

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/proof/probepod"
)

const (
	// cpuLimitMillis is the limit of the limited pod, in thousandths of a core. burnThreads are busy for burnTime,
	// which spans many of the periods in which Windows and Linux share CPU time out.
	cpuLimitMillis = 200
	burnThreads    = 2
	burnTime       = 5 * time.Second
	// tolerated is how many times its limit a container may use: the last period counts fully, and Windows rounds
	// a limit up to a hundredth of the node.
	tolerated = 1.5

	mebibyte = 1 << 20
	// memoryLimitBytes is the limit of the limited pod. Windows' own processes in a container need up to half of
	// it. wantedBytes is what the probe asks for, and fewBytes what it must get.
	memoryLimitBytes = 256 * mebibyte
	wantedBytes      = 2 * memoryLimitBytes
	fewBytes         = 16 * mebibyte
	// fillLimit bounds the time of an allocation.
	fillLimit = time.Minute
)

// cpuLimit proves that a container with a limit cannot use more CPU time, although one without it can.
//
// The probe reads the CPU time of its own process from the system. The statistics of kubelet and of the runtime
// are no measure here: they are seconds old, and some versions of containerd report zeros on Windows.
func (t *nodeTest) cpuLimit(ctx context.Context) error {
	limited, err := t.limitedPod(ctx)
	if err != nil {
		return err
	}
	free, err := t.freePod(ctx)
	if err != nil {
		return err
	}
	used, err := t.burn(ctx, limited)
	if err != nil {
		return err
	}
	control, err := t.burn(ctx, free)
	if err != nil {
		return err
	}
	const limit = cpuLimitMillis / 1000.0
	switch {
	case used > limit*tolerated:
		return fmt.Errorf("a container with a CPU limit of %.2f cores used %.2f cores for %s; does its runtime "+
			"apply CPU limits?", limit, used, burnTime)
	case control <= limit*tolerated:
		return &UnavailableError{fmt.Sprintf("the node is too busy: a container without a limit got %.2f cores, so the "+
			"limit of %.2f cores shows nothing", control, limit)}
	}
	return nil
}

// burn returns the number of cores that busy threads in a pod use.
func (t *nodeTest) burn(ctx context.Context, g *guest) (float64, error) {
	s, err := t.probeIn(ctx, g)
	if err != nil {
		return 0, err
	}
	defer s.Stop()
	got, err := load(ctx, s, netprobe.Load{Threads: burnThreads, MS: burnTime.Milliseconds()}, burnTime)
	switch {
	case err != nil:
		return 0, tried(err)
	case got.WallMS < burnTime.Milliseconds() || got.CPUMS < 0:
		return 0, tried(fmt.Errorf("the probe in pod %s was busy for %d ms, not for %s", g.pod, got.WallMS, burnTime))
	}
	return float64(got.CPUMS) / float64(got.WallMS), nil
}

// load asks a probe for a load, and returns what it got. took is how long the work takes.
func load(ctx context.Context, s *probepod.Session, l netprobe.Load, took time.Duration) (netprobe.Loaded, error) {
	reply, err := s.Ask(ctx, netprobe.Request{Load: &l}, took+probepod.ReplyMargin)
	if err == nil && reply.Loaded == nil {
		err = errors.New("the probe answered without a result")
	}
	if err != nil {
		return netprobe.Loaded{}, err
	}
	return *reply.Loaded, nil
}

// memoryLimit proves that a container with a limit cannot get more memory, although one without it can.
func (t *nodeTest) memoryLimit(ctx context.Context) error {
	limited, err := t.limitedPod(ctx)
	if err != nil {
		return err
	}
	free, err := t.freePod(ctx)
	if err != nil {
		return err
	}
	refused, err := t.fill(ctx, limited)
	switch {
	case err != nil:
		return err
	case !refused:
		return fmt.Errorf("a container with a memory limit of %d MiB got %d MiB; does the runtime apply limits?",
			memoryLimitBytes/mebibyte, wantedBytes/mebibyte)
	}
	refused, err = t.fill(ctx, free)
	switch {
	case err != nil:
		return err
	case refused:
		return &UnavailableError{fmt.Sprintf("the node has too little memory: a container without a limit did not get "+
			"%d MiB either", wantedBytes/mebibyte)}
	}
	return nil
}

// fill reports whether the system refuses wantedBytes of memory to a process in a pod. The error is a
// *notTriedError.
func (t *nodeTest) fill(ctx context.Context, g *guest) (refused bool, err error) {
	s, err := t.probeIn(ctx, g)
	if err != nil {
		return false, err
	}
	defer s.Stop()
	if _, err := load(ctx, s, netprobe.Load{Bytes: fewBytes}, fillLimit); err != nil {
		return false, tried(fmt.Errorf("allocate %d MiB: %w", fewBytes/mebibyte, err))
	}
	_, err = load(ctx, s, netprobe.Load{Bytes: wantedBytes}, fillLimit)
	var ended *probepod.EndedError
	switch {
	case err == nil:
		return false, nil
	case errors.As(err, &ended) && ended.Code != 0, t.hasEnded(ctx, g.pod):
		return true, nil
	}
	return false, tried(fmt.Errorf("allocate %d MiB: %w", wantedBytes/mebibyte, err))
}

// hasEnded reports whether the container of a pod has ended, as it may if the system ends all its processes.
func (t *nodeTest) hasEnded(ctx context.Context, pod cluster.Pod) bool {
	live, err := t.c.Clientset().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	return err == nil && len(live.Status.ContainerStatuses) > 0 &&
		live.Status.ContainerStatuses[0].State.Terminated != nil
}
