package ability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// idlePods is the number of pods that run during a restart, in addition to the one that is busy.
	idlePods = 3
	// busyTime bounds the load during a restart.
	busyTime = netprobe.MaxLoad
	// statusLimit bounds the time until kubelet has reported the pods after its restart.
	statusLimit = 2 * time.Minute
	removeLimit = 2 * time.Minute
)

// restart proves that pods keep running while a service of the node restarts under load, and that the node
// works afterwards: it is Ready, kubelet renews its lease, commands run in the pods, and a new pod starts.
func (t *nodeTest) restart(ctx context.Context, service string) error {
	m, err := t.machine(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	guests, err := t.crowd(ctx, service)
	if err != nil {
		return err
	}
	before, err := t.states(ctx, guests)
	if err != nil {
		return tried(err)
	}
	stop, err := t.busy(ctx)
	if err != nil {
		return err
	}
	defer stop()
	t.r.Step("restarting %s under load", service)
	if err := m.Restart(ctx, service); err != nil {
		return fmt.Errorf("restart %s: %w", service, err)
	}
	if err := t.works(ctx, service, ""); err != nil {
		return fmt.Errorf("after the restart of %s: %w", service, err)
	}
	if err := t.unchanged(ctx, guests, before); err != nil {
		return fmt.Errorf("after the restart of %s: %w", service, err)
	}
	return nil
}

// machine connects to the node outside of the cluster, and keeps other nodes from being disturbed until the
// machine is closed.
func (t *nodeTest) machine(ctx context.Context) (Machine, error) {
	if t.Machine == nil {
		return nil, &UnavailableError{"swdt has no way to the node: -c names its node file"}
	}
	m, err := t.Machine(ctx, t.node, t.r)
	var away *UnavailableError
	if err != nil && !errors.As(err, &away) {
		err = tried(err)
	}
	if err != nil {
		return nil, err
	}
	select {
	case t.disturbing <- struct{}{}:
		return &exclusive{Machine: m, release: func() { <-t.disturbing }}, nil
	case <-ctx.Done():
		m.Close()
		return nil, context.Cause(ctx)
	}
}

// exclusive is a Machine that calls release when it is closed.
type exclusive struct {
	Machine
	release func()
}

// Close closes the machine.
func (e *exclusive) Close() {
	e.Machine.Close()
	e.release()
}

// crowd returns the pods that must keep running.
func (t *nodeTest) crowd(ctx context.Context, name string) ([]*guest, error) {
	free, err := t.freePod(ctx)
	if err != nil {
		return nil, err
	}
	guests := []*guest{free}
	for i := range idlePods {
		g := t.start(ctx, t.newPod(fmt.Sprintf("%s-idle-%d-%d", name, t.index, i+1), t.node, "pause"), t.node, t.r)
		if g.err != nil {
			return nil, tried(g.err)
		}
		guests = append(guests, g)
	}
	return guests, nil
}

// busy keeps a thread in the free pod busy, until stop is called or the restart cuts the connection.
func (t *nodeTest) busy(ctx context.Context) (stop func(), err error) {
	s, err := t.probeIn(ctx, t.free)
	if err != nil {
		return nil, err
	}
	if _, err := load(ctx, s, netprobe.Load{Bytes: fewBytes}, fillLimit); err != nil { // it runs
		return nil, tried(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = load(ctx, s, netprobe.Load{Threads: 1, MS: busyTime.Milliseconds()}, busyTime) // until the cut
	}()
	return func() {
		cancel()
		s.Stop()
		<-done
	}, nil
}

// state has the parts of a pod that stay the same while it keeps running.
type state struct {
	uid, container string
	restarts       int32
	problem        string // why it does not run; "" if it does
}

func stateOf(p *corev1.Pod) state {
	s := state{uid: string(p.UID), problem: "it has no container"}
	for _, c := range p.Status.ContainerStatuses {
		s.container, s.restarts, s.problem = c.ContainerID, c.RestartCount, ""
		if end := c.State.Terminated; end != nil {
			s.problem = fmt.Sprintf("its container ended with exit code %d (%s)", end.ExitCode, end.Reason)
		} else if c.State.Running == nil {
			s.problem = "its container does not run"
		}
	}
	if p.DeletionTimestamp != nil {
		s.problem = "it is being deleted"
	}
	return s
}

// states returns the present states of pods.
func (t *nodeTest) states(ctx context.Context, guests []*guest) ([]state, error) {
	var all []state
	for _, g := range guests {
		p, err := t.c.Clientset().CoreV1().Pods(g.pod.Namespace).Get(ctx, g.pod.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			all = append(all, state{problem: "it is gone"})
		case err != nil:
			return nil, t.c.Failure("read pod "+g.pod.String(), cluster.Permission{Verb: "get", Resource: "pods",
				Namespace: g.pod.Namespace, Name: g.pod.Name}, err)
		default:
			all = append(all, stateOf(p))
		}
	}
	return all, nil
}

// unchanged returns an error that names the first pod that did not keep running.
func (t *nodeTest) unchanged(ctx context.Context, guests []*guest, before []state) error {
	after, err := t.states(ctx, guests)
	if err != nil {
		return err
	}
	for i, g := range guests {
		was, is := before[i], after[i]
		switch {
		case is.problem != "":
			return fmt.Errorf("pod %s was lost: %s", g.pod.Name, is.problem)
		case was.uid != is.uid:
			return fmt.Errorf("pod %s was lost: another pod has its name", g.pod.Name)
		case was.container != is.container || was.restarts != is.restarts:
			return fmt.Errorf("pod %s did not keep running: its container was started again", g.pod.Name)
		}
		if err := t.execs(ctx, g); err != nil {
			return fmt.Errorf("pod %s: %w", g.pod.Name, err)
		}
	}
	return nil
}

// execs waits until a command runs in a pod.
func (t *nodeTest) execs(ctx context.Context, g *guest) error {
	return wait.Condition{
		Name: "a command to run in the pod", Interval: interval, MaxInterval: maxInterval, Limit: reachLimit,
		Look: func(ctx context.Context) error {
			result, err := t.Access.Exec(ctx, g.pod, smoke.Container, maxOutput, "curl.exe", "--version")
			if err == nil && result.Code != 0 {
				err = fmt.Errorf("curl.exe --version ended with exit code %d", result.Code)
			}
			return err
		},
	}.Wait(ctx)
}

// works waits until the node works again: kubelet renews the node's lease, the node is Ready, and a new pod
// starts. If oldBoot is not "", the node must report another boot ID.
func (t *nodeTest) works(ctx context.Context, name, oldBoot string) error {
	var first time.Time
	err := wait.Condition{
		Name: "the node to be Ready", Interval: interval, MaxInterval: maxInterval, Limit: t.Wait,
		Look: func(ctx context.Context) error {
			n, err := t.c.Node(ctx, t.node.Name)
			if err != nil {
				return err
			}
			if first.IsZero() {
				first = n.LeaseRenewed
			}
			switch {
			case !n.LeaseRenewed.After(first):
				return errors.New("kubelet has not renewed the node's lease yet")
			case !n.Ready:
				return errors.New("the node is " + n.State())
			case oldBoot != "" && n.BootID == oldBoot:
				return errors.New("the Node object still has the boot ID from before the reboot")
			}
			return nil
		},
	}.Wait(ctx)
	if err != nil {
		return err
	}
	g := t.start(ctx, t.newPod(fmt.Sprintf("%s-after-%d", name, t.index), t.node, "pause"), t.node, t.r)
	if g.err != nil {
		return fmt.Errorf("no new pod starts: %w", g.err)
	}
	return nil
}

// remove deletes a pod, and waits until it is gone.
func (t *nodeTest) remove(ctx context.Context, pod cluster.Pod) error {
	client := t.c.Clientset().CoreV1().Pods(pod.Namespace)
	if err := client.Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return t.c.Failure("remove pod "+pod.String(), cluster.Permission{Verb: "delete", Resource: "pods",
			Namespace: pod.Namespace, Name: pod.Name}, err)
	}
	return wait.Condition{
		Name: "pod " + pod.String() + " to be gone", Interval: interval, MaxInterval: maxInterval, Limit: removeLimit,
		Look: func(ctx context.Context) error {
			_, err := client.Get(ctx, pod.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil {
				err = errors.New("the node still ends it")
			}
			return err
		},
	}.Wait(ctx)
}

// reboot proves that the node works after a reboot, and that a pod that restarts always runs there again.
func (t *nodeTest) reboot(ctx context.Context) error {
	m, err := t.machine(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	pod := t.newPod(fmt.Sprintf("survivor-%d", t.index), t.node, "pause")
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	survivor := t.start(ctx, pod, t.node, t.r)
	if survivor.err != nil {
		return tried(survivor.err)
	}
	before, err := t.states(ctx, []*guest{survivor})
	if err != nil {
		return tried(err)
	}
	n, err := t.c.Node(ctx, t.node.Name)
	if err != nil {
		return tried(err)
	}
	t.r.Step("rebooting")
	if err := m.Reboot(ctx); err != nil {
		return fmt.Errorf("reboot: %w", err)
	}
	if err := t.works(ctx, "reboot", n.BootID); err != nil {
		return fmt.Errorf("after the reboot: %w", err)
	}
	return t.runsAgain(ctx, survivor, before[0])
}

// runsAgain waits until a new container of the pod runs.
func (t *nodeTest) runsAgain(ctx context.Context, g *guest, before state) error {
	return wait.Condition{
		Name: "pod " + g.pod.Name + " to run again after the reboot", Interval: interval, MaxInterval: maxInterval,
		Limit: statusLimit,
		Look: func(ctx context.Context) error {
			after, err := t.states(ctx, []*guest{g})
			switch {
			case err != nil:
				return err
			case slices.Equal(after, []state{before}):
				return errors.New("kubelet has not reported it since")
			case after[0].uid != before.uid && after[0].problem == "":
				return wait.Stop(errors.New("another pod has its name"))
			case after[0].problem != "":
				return errors.New(after[0].problem)
			}
			return nil
		},
	}.Wait(ctx)
}
