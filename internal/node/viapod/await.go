package viapod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	interval, maxInterval = 200 * time.Millisecond, 2 * time.Second
	// pullLimit is how long the pull of the image may fail. The kubelet repeats a failed pull.
	pullLimit = time.Minute
)

// awaitPod waits until the pod's container runs. The error has the last state of the pod. The time in which the node pulls
// the image has a limit of its own: an image of Windows has gigabytes.
func (w *Way) awaitPod(ctx context.Context) error {
	s := &starting{o: w.o}
	var seen error
	err := wait.Condition{
		Name: "pod " + w.pod.Pod + " to run", Interval: interval, MaxInterval: maxInterval,
		Limit: w.o.StartLimit + w.o.PullLimit,
		Look: func(ctx context.Context) error {
			pod, err := w.c.Clientset().CoreV1().Pods(w.pod.Namespace).Get(ctx, w.pod.Pod, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return wait.Stop(&NotStartedError{Node: w.o.Node, Cause: "the pod is gone",
					Remedy: "does another program delete pods?"})
			case err != nil && seen != nil && ctx.Err() != nil:
				return seen // the request only had too little time, at the end of the wait
			case err != nil:
				return wait.Stop(w.fail("read pod "+w.pod.Pod, w.podPermission("get", w.pod.Namespace), err))
			}
			state := s.look(pod)
			if state == nil {
				w.pod.Container, _ = runningContainer(pod)
				return nil
			}
			seen = w.withEvent(ctx, pod, state)
			if s.spend(state.pulling) {
				w.o.Reporter.Step("node %s pulls image %s", w.o.Node, w.o.Image)
			}
			if !state.pulling && s.waited > w.o.StartLimit {
				state.Cause = fmt.Sprintf("not running after %s: %s", s.waited.Round(time.Second), state.Cause)
				return wait.Stop(state)
			}
			return wait.StopIf(state.final, seen)
		},
		Pending: func(state error) { w.o.Reporter.Debug("waiting: %v", state) },
	}.Wait(ctx)
	var over *wait.Error
	if errors.As(err, &over) && ctx.Err() == nil && seen != nil {
		var state *NotStartedError
		if errors.As(seen, &state) {
			state.Cause = fmt.Sprintf("not running after %s: %s", over.After.Round(time.Second), state.Cause)
			err = state
		}
	}
	if err == nil {
		return w.pod.save()
	}
	return w.withPressure(ctx, err)
}

// withPressure adds the cause and the remedy to the error of a pod that did not start, if the kubelet reports that the
// node's disk is full: then it refuses pods, and pulls no image.
func (w *Way) withPressure(ctx context.Context, err error) error {
	state, ok := errors.AsType[*NotStartedError](err)
	if !ok {
		return err
	}
	n, failed := w.c.Clientset().CoreV1().Nodes().Get(ctx, w.o.Node, metav1.GetOptions{})
	if failed != nil { // the pod's own state stays
		return err
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeDiskPressure && c.Status == corev1.ConditionTrue {
			state.Cause += fmt.Sprintf("; the node's disk is full (%s: %s)", c.Type, shortened(c.Message))
			state.Remedy = "free some space on the disk of node " + w.o.Node + " that has kubelet's and containerd's folders"
		}
	}
	return err
}

// starting judges the states of a pod that starts.
type starting struct {
	o       Options
	failing time.Time // when the pull of the image first failed; zero: it has not failed

	looked  time.Time     // the last look
	waited  time.Duration // the time so far in which the image was not pulled
	pulling bool          // the image was pulled at the last look
}

// spend counts the time since the last look, and reports whether the pull of the image has begun since.
func (s *starting) spend(pulling bool) (begun bool) {
	now := time.Now()
	if !s.looked.IsZero() && !s.pulling {
		s.waited += now.Sub(s.looked)
	}
	begun = pulling && !s.pulling
	s.looked, s.pulling = now, pulling
	return begun
}

// look returns nil if the pod's container runs, and otherwise the pod's state.
func (s *starting) look(pod *corev1.Pod) *NotStartedError {
	state := func(final bool, remedy, format string, args ...any) *NotStartedError {
		return &NotStartedError{Node: s.o.Node, Cause: shortened(fmt.Sprintf(format, args...)), Remedy: remedy, final: final}
	}
	if _, running := runningContainer(pod); running {
		return nil
	}
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Terminated != nil:
			t := c.State.Terminated
			return state(true, "does the node let SYSTEM run cmd.exe and ping.exe?", "its program ended with exit code %d "+
				"(%s %s)", t.ExitCode, t.Reason, t.Message)
		case c.State.Waiting != nil:
			return s.waiting(c, state)
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return state(true, "", "the kubelet refuses the pod: %s: %s", pod.Status.Reason, pod.Status.Message)
	}
	return state(false, remedy.KubectlCommand("get", "node", s.o.Node)+" shows whether its kubelet reports; a node "+
		"without a kubelet can be reached by SSH only", "the node's kubelet has not begun to start the pod")
}

func (s *starting) waiting(c corev1.ContainerStatus,
	state func(final bool, remedy, format string, args ...any) *NotStartedError) *NotStartedError {
	const other = "name an image that the node can pull: spec.credentials.kubernetes.image, or --via kubernetes,image=…"
	why := c.State.Waiting
	refused := func(final bool) *NotStartedError {
		is := state(final, other, "image %s: %s: %s", c.Image, why.Reason, why.Message)
		is.image = true
		return is
	}
	switch why.Reason {
	case "ErrImagePull", "ImagePullBackOff":
		if s.failing.IsZero() {
			s.failing = time.Now()
		}
		return refused(time.Since(s.failing) > pullLimit)
	case "InvalidImageName", "ErrImageNeverPull":
		return refused(true)
	case "CreateContainerError", "RunContainerError":
		return refused(false)
	}
	return state(false, "", "%s: %s", why.Reason, why.Message)
}

// withEvent adds the pod's last warning to a state. Without the right to read events, it adds that right.
// Without a warning, the state stays as it is.
func (w *Way) withEvent(ctx context.Context, pod *corev1.Pod, state *NotStartedError) *NotStartedError {
	list, err := w.c.Clientset().CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{Limit: 100,
		FieldSelector: fields.OneTermEqualSelector("involvedObject.name", pod.Name).String()})
	if apierrors.IsForbidden(err) {
		state.Cause += " (its events may explain it, but the kubeconfig's user may not " +
			cluster.Permission{Verb: "list", Resource: "events", Namespace: pod.Namespace}.String() + ")"
	}
	if err != nil {
		return state
	}
	state.pulling = isPulling(list.Items, pod)
	warnings := slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return e.Type != corev1.EventTypeWarning || e.InvolvedObject.Name != pod.Name
	})
	if len(warnings) == 0 {
		return state
	}
	last := slices.MaxFunc(warnings, func(a, b corev1.Event) int {
		return cluster.LastSeen(a).Compare(cluster.LastSeen(b))
	})
	state.Cause = fmt.Sprintf("%s (%s: %s)", state.Cause, shortened(last.Reason), shortened(last.Message))
	return state
}

// isPulling reports whether the last event of the kubelet about the pod's image is the begin of a pull.
func isPulling(events []corev1.Event, pod *corev1.Pod) bool {
	var last *corev1.Event
	for i, e := range events {
		about := e.InvolvedObject.Name == pod.Name && slices.Contains([]string{"Pulling", "Pulled", "Failed", "BackOff"}, e.Reason)
		if about && (last == nil || cluster.LastSeen(e).After(cluster.LastSeen(*last))) {
			last = &events[i]
		}
	}
	return last != nil && last.Reason == "Pulling"
}
