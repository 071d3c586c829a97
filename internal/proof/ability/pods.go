package ability

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/proof/probepod"
	"github.com/swdt-dev/swdt/internal/ui"
)

// guest is a pod of a run.
type guest struct {
	pod    cluster.Pod
	system string
	live   *corev1.Pod // as it was when it had started
	err    error       // why it did not start; nil if it did
	copied bool        // the probe is in the pod
}

// start makes a pod, and waits until it runs.
func (w *run) start(ctx context.Context, pod *corev1.Pod, n cluster.Node, r ui.Reporter) *guest {
	g := &guest{pod: cluster.Pod{Namespace: pod.Namespace, Name: pod.Name}, system: systemOf(n)}
	if why := smoke.CannotRun(n); why != "" {
		g.err = fmt.Errorf("node %s %s", n.Name, why)
		return g
	}
	_, err := w.c.Clientset().CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if g.err = w.refused("make pod "+pod.Name, "pods", err); g.err != nil {
		return g
	}
	flag := "--linux-image"
	if g.system == windows {
		flag = "--image"
	}
	if g.live, err = smoke.Await(ctx, w.c, g.pod, n, w.Wait, flag, r); err != nil {
		g.err = fmt.Errorf("pod %s on node %s: %w", pod.Name, n.Name, err)
	}
	return g
}

// freePod returns the pod of the node that has no limits and serves HTTP. It is made once. The error is a
// *notTriedError.
func (t *nodeTest) freePod(ctx context.Context) (*guest, error) {
	if t.free == nil {
		t.free = t.start(ctx, t.newPod(fmt.Sprintf("free-%d", t.index), t.node, server()...), t.node, t.r)
	}
	return t.free, tried(t.free.err)
}

// limitedPod returns the pod of the node with limits, as freePod does.
func (t *nodeTest) limitedPod(ctx context.Context) (*guest, error) {
	if t.limited == nil {
		pod := t.newPod(fmt.Sprintf("limited-%d", t.index), t.node, "pause")
		limit(pod)
		t.limited = t.start(ctx, pod, t.node, t.r)
	}
	return t.limited, tried(t.limited.err)
}

// probeIn starts swdt-probe in a pod, until ctx ends. The error is a *notTriedError.
func (t *nodeTest) probeIn(ctx context.Context, g *guest) (*probepod.Session, error) {
	if !g.copied {
		program, err := t.Program(g.system, processorOf(t.node))
		if err != nil {
			return nil, tried(err)
		}
		t.r.Step("copying the probe into pod %s/%s", g.pod.Namespace, g.pod.Name)
		if err := probepod.Upload(ctx, t.Access, g.pod, probepod.PlaceOf(g.system, false), program); err != nil {
			return nil, tried(err)
		}
		g.copied = true
	}
	return probepod.Start(ctx, t.Access, g.pod, probepod.PlaceOf(g.system, false)), nil
}

// tried returns err as a *notTriedError; nil if err is nil.
func tried(err error) error {
	if err == nil {
		return nil
	}
	return &notTriedError{err}
}
