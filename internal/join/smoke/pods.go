package smoke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/wait"
)

// pullLimit is how long the pull of an image may fail before the leg fails. The kubelet repeats a
// failed pull. That helps if the registry failed for a moment, but not if the image does not exist.
const pullLimit = 90 * time.Second

// settleTime is how long a container must run to count as started.
const settleTime = 2 * time.Second

// failure is the reason why a leg did not pass.
type failure struct{ cause, remedy string }

func (f *failure) Error() string {
	if f.remedy == "" {
		return f.cause
	}
	return f.cause + "; " + f.remedy
}

// podLook returns nil if a pod has the wanted state, and otherwise an error that describes the
// pod's present state. useless reports that more waiting would probably not help.
type podLook func(p *corev1.Pod) (state error, useless bool)

// awaitPod waits until the function look returns a nil state for the pod, and returns the pod.
// wanted names the awaited state in messages. While awaitPod waits, it reports each new state of
// the pod.
func (w *run) awaitPod(ctx context.Context, pod cluster.Pod, wanted string, limit time.Duration, look podLook,
	r ui.Reporter) (found *corev1.Pod, err error) {
	r.Step("waiting until pod %s is %s", pod, wanted)
	reported, misses := "", 0
	var seen error // the last state of the pod
	err = wait.Condition{
		Name: "pod " + pod.String() + " to be " + wanted, Interval: interval, MaxInterval: maxInterval, Limit: limit,
		Look: func(ctx context.Context) error {
			p, err := w.c.Clientset().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return wait.Stop(&failure{"pod " + pod.String() + " is gone",
					"does another program or user delete pods of the cluster?"})
			case err != nil:
				err = w.c.Failure("read pod "+pod.String(), cluster.Permission{Verb: "get", Resource: "pods",
					Namespace: pod.Namespace, Name: pod.Name}, err)
				if misses++; misses == 1 && seen != nil && !denied(err) {
					// at the end of the wait, the request may fail only because it had too little
					// time
					return seen
				}
				return wait.StopIf(denied(err), err)
			}
			misses = 0
			state, useless := look(p)
			if state == nil {
				found = p
				return nil
			}
			seen = w.withEvent(ctx, pod, state)
			return wait.StopIf(useless, seen)
		},
		Pending: func(state error) {
			if now := shortened(state.Error(), maxText); now != reported {
				reported = now
				r.Info("waiting: %s", now)
			}
		},
	}.Wait(ctx)
	return found, late(ctx, err, wanted)
}

// late completes the error of a wait. If the wait reached its limit, late returns a *failure with
// the last state and the remedy for that state. Otherwise it returns err unchanged.
func late(ctx context.Context, err error, wanted string) error {
	var over *wait.Error
	if !errors.As(err, &over) || ctx.Err() != nil {
		return err
	}
	f := &failure{cause: fmt.Sprintf("not %s after %s", wanted, over.After.Round(time.Second))}
	var last *failure
	switch {
	case errors.As(over.Last, &last):
		f.cause, f.remedy = f.cause+": "+last.cause, last.remedy
	case over.Last != nil:
		f.cause += ": " + over.Last.Error()
	}
	return f
}

func denied(err error) bool {
	var (
		unauthorized *cluster.UnauthorizedError
		forbidden    *cluster.ForbiddenError
	)
	return errors.As(err, &unauthorized) || errors.As(err, &forbidden)
}

// withEvent adds the pod's last warning to the state, such as the reason why the pod has no
// network. If there is no warning, it returns the state unchanged.
func (w *run) withEvent(ctx context.Context, pod cluster.Pod, state error) error {
	var f *failure
	if !errors.As(state, &f) {
		return state
	}
	list, err := w.c.Clientset().CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{Limit: 100,
		FieldSelector: fields.OneTermEqualSelector("involvedObject.name", pod.Name).String()})
	if err != nil { // the event would only explain the state, so the state is enough
		return state
	}
	warnings := slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return e.Type != corev1.EventTypeWarning || e.InvolvedObject.Name != pod.Name
	})
	if len(warnings) == 0 {
		return state
	}
	last := slices.MaxFunc(warnings, func(a, b corev1.Event) int {
		return cluster.LastSeen(a).Compare(cluster.LastSeen(b))
	})
	text := last.Reason + ": " + firstLine(last.Message)
	if strings.Contains(f.cause, firstLine(last.Message)) {
		return state
	}
	return &failure{f.cause + " (" + text + ")", f.remedy}
}

// isScheduled is a podLook. The wanted state is that the scheduler has given the pod a node.
func isScheduled(p *corev1.Pod) (error, bool) {
	if p.Spec.NodeName != "" {
		return nil, false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return &failure{c.Reason + ": " + firstLine(c.Message),
				remedy.KubectlCommand("get", "nodes", "-o", "wide") + " shows the states of the nodes"}, false
		}
	}
	return &failure{"no scheduler has looked at the pod", "does kube-scheduler run?"}, false
}

// starting is the state of the wait for a kubelet to start a pod. Its method look is a podLook.
type starting struct {
	build   string    // the build of the node's Windows; "" for the pod on Linux
	flag    string    // the flag that names another image
	failing time.Time // when the pull of the image first failed; zero: it has not failed
	running time.Time // when the container was first seen running; zero: never
}

func (s *starting) look(p *corev1.Pod) (error, bool) {
	if p.Status.Phase == corev1.PodFailed && len(p.Status.ContainerStatuses) == 0 {
		return &failure{firstLine("the pod failed: " + p.Status.Reason + ": " + p.Status.Message), ""}, true
	}
	for _, c := range p.Status.ContainerStatuses {
		switch {
		case c.State.Running != nil && p.Status.PodIP != "":
			return s.settled(), false
		case c.State.Terminated != nil:
			return ended(c), true
		case c.State.Waiting != nil:
			return s.waiting(c)
		}
	}
	return &failure{"the kubelet has not begun to start the pod", "does its node answer?"}, false
}

// settled returns nil if the container has run for settleTime. A container that is running may
// still be about to fail: a program that does not know the command netexec also runs for a moment.
func (s *starting) settled() error {
	if s.running.IsZero() {
		s.running = time.Now()
	}
	if time.Since(s.running) < settleTime {
		return &failure{"the container has just started", ""}
	}
	return nil
}

// waiting returns the reason why a container does not run yet, and whether more waiting is useless.
func (s *starting) waiting(c corev1.ContainerStatus) (error, bool) {
	why := c.State.Waiting
	switch why.Reason {
	case "ErrImagePull", "ImagePullBackOff":
		if s.failing.IsZero() {
			s.failing = time.Now()
		}
		return s.pullFailed(c), time.Since(s.failing) > pullLimit
	case "InvalidImageName", "ErrImageNeverPull":
		return s.pullFailed(c), true
	}
	hint := "does the pod network work on the node? `swdt network status` shows it"
	if s.build != "" { // on Linux, the distribution supplies the pause image
		hint = "is there a pause image for Windows build " + s.build +
			" in spec.kubernetes.containerd.pauseImage, and " + hint
	}
	return &failure{strings.TrimSuffix(why.Reason+": "+firstLine(why.Message), ": "), hint}, false
}

func (s *starting) pullFailed(c corev1.ContainerStatus) *failure {
	f := &failure{cause: fmt.Sprintf("image %s: %s: %s", c.Image, c.State.Waiting.Reason,
		firstLine(c.State.Waiting.Message)),
		remedy: "does the node reach the registry, and is there such an image? " + s.flag + " names another one"}
	if s.build != "" {
		f.remedy = "does the node reach the registry, and is there an image for Windows build " + s.build +
			"? " + s.flag + " names another one"
	}
	return f
}

// over returns the failure of a pod whose container has ended in the meantime; nil if the container
// still runs. The kubelet reports the end of a container some seconds late.
func (w *run) over(ctx context.Context, pod cluster.Pod) error {
	p, err := w.c.Clientset().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil { // the caller already has another error to return
		return nil
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			return ended(c)
		}
	}
	return nil
}

// ended returns the failure of a container that has ended.
func ended(c corev1.ContainerStatus) *failure {
	is := c.State.Terminated
	text := fmt.Sprintf("the container ended with exit code %d (%s)", is.ExitCode, is.Reason)
	if is.Message != "" {
		text += ": " + firstLine(is.Message)
	}
	return &failure{text, "does the image start agnhost's netexec?"}
}
