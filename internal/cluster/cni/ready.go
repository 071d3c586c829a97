package cni

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/wait"
)

// pollInterval is the time between two looks at a condition.
const pollInterval = time.Second

// Condition is a state of the cluster that other programs establish.
type Condition struct {
	Name string // such as "Calico's operator"
	// Look returns nil if the condition holds, otherwise a *NotReadyError. Any other error means
	// that the state is unknown.
	Look func(ctx context.Context) error
}

// NotReadyError is the reason why a condition does not hold.
type NotReadyError struct {
	What   string // the state, such as the message of a pod
	Remedy string // "" if swdt knows of nothing to do but wait
}

func (e *NotReadyError) Error() string {
	if e.Remedy == "" {
		return e.What
	}
	return e.What + "; " + e.Remedy
}

// Await waits until all conditions hold, one after the other, each for at most limit. It reports
// each new state. A refusal by the API server ends the wait at once.
func Await(ctx context.Context, conditions []Condition, limit time.Duration, report func(state string)) error {
	for _, c := range conditions {
		reported := ""
		err := wait.Condition{
			Name: c.Name, Interval: pollInterval, Limit: limit,
			Look: func(ctx context.Context) error {
				err := c.Look(ctx)
				return wait.StopIf(err != nil && refused(err), err)
			},
			Pending: func(state error) {
				if now := c.Name + ": " + state.Error(); now != reported {
					reported = now
					report(now)
				}
			},
		}.Wait(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

func refused(err error) bool {
	var (
		unauthorized *cluster.UnauthorizedError
		forbidden    *cluster.ForbiddenError
	)
	return errors.As(err, &unauthorized) || errors.As(err, &forbidden)
}

// Established is the condition that the API server serves the kind of a CustomResourceDefinition.
func (s *Server) Established(crd *unstructured.Unstructured) Condition {
	return Condition{Name: RefOf(crd).String(), Look: func(ctx context.Context) error {
		live, err := s.Get(ctx, crd)
		if err != nil {
			return err
		}
		if live == nil {
			return &NotReadyError{What: "it does not exist"}
		}
		return conditionOf(live, "Established")
	}}
}

// conditionOf returns nil if an object's condition is True, otherwise a *NotReadyError with its reason.
func conditionOf(o *unstructured.Unstructured, kind string) error {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range all {
		c, _ := item.(map[string]any)
		if c["type"] != kind {
			continue
		}
		if c["status"] == "True" {
			return nil
		}
		return &NotReadyError{What: fmt.Sprintf("%s is %v: %s", kind, c["status"], reason(c))}
	}
	return &NotReadyError{What: "its status has no condition " + kind}
}

// reason returns the reason and message of a condition.
func reason(condition map[string]any) string {
	var parts []string
	for _, key := range []string{"reason", "message"} {
		if text, _ := condition[key].(string); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ": ")
}

// OperatorAvailable is the condition that Calico's operator runs.
func (s *Server) OperatorAvailable() Condition {
	return s.available("Calico's operator", OperatorNamespace, operatorName)
}

// AntreaController is the condition that Antrea's controller runs.
func (s *Server) AntreaController() Condition {
	return s.available("Antrea's controller", antreaNamespace, antreaController)
}

// available is the condition that a Deployment is available.
func (s *Server) available(name, namespace, deployment string) Condition {
	return Condition{Name: name, Look: func(ctx context.Context) error {
		client := s.cluster.Clientset()
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, deployment, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return &NotReadyError{What: "its Deployment does not exist"}
		}
		if err != nil {
			return s.cluster.Failure("read Deployment "+deployment, cluster.Permission{Verb: "get",
				Group: appsv1.GroupName, Resource: "deployments", Namespace: namespace, Name: deployment}, err)
		}
		what := "its controller has not seen the Deployment yet"
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue &&
				d.Status.ObservedGeneration >= d.Generation {
				return nil
			}
			if c.Status != corev1.ConditionTrue || c.Type == appsv1.DeploymentReplicaFailure {
				what = c.Reason + ": " + c.Message
			}
		}
		return s.podReason(ctx, namespace, d.Spec.Selector, what)
	}}
}

// PodAddresses is the condition that each of the nodes has a range of addresses for its pods, which
// Antrea's agents wait for.
func (s *Server) PodAddresses(nodes []WindowsNode) Condition {
	return Condition{Name: "pod addresses of Windows nodes", Look: func(ctx context.Context) error {
		for _, n := range nodes {
			live, err := s.cluster.Clientset().CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err): // the node was removed meanwhile
			case err != nil:
				return s.cluster.Failure("read Node "+n.Name, cluster.Permission{Verb: "get", Resource: "nodes", Name: n.Name},
					err)
			case live.Spec.PodCIDR == "":
				return &NotReadyError{What: "Node " + n.Name + " has no podCIDR",
					Remedy: "does kube-controller-manager run with --allocate-node-cidrs and --cluster-cidr?"}
			}
		}
		return nil
	}}
}

// podReason returns the reason why one of the selected pods is not Ready, as a *NotReadyError. If
// all of them are Ready, the reason is the last argument.
func (s *Server) podReason(ctx context.Context, namespace string, selector *metav1.LabelSelector,
	otherwise string) error {
	pods, err := s.pods(ctx, namespace, selector)
	if err != nil {
		return err
	}
	for i := range pods {
		if err := notReady(&pods[i], ""); err != nil {
			return err
		}
	}
	return &NotReadyError{What: otherwise}
}

func (s *Server) pods(ctx context.Context, namespace string, selector *metav1.LabelSelector) ([]corev1.Pod, error) {
	list, err := s.cluster.Clientset().CoreV1().Pods(namespace).List(ctx,
		metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(selector)})
	if err != nil {
		return nil, s.cluster.Failure("list the pods of namespace "+namespace,
			cluster.Permission{Verb: "list", Resource: "pods", Namespace: namespace}, err)
	}
	return list.Items, nil
}

// notReady returns nil if a pod is Ready, otherwise a *NotReadyError. build is the Windows build of
// its node, or "".
func notReady(p *corev1.Pod, build string) error {
	name := "pod " + p.Namespace + "/" + p.Name
	if p.Spec.NodeName != "" {
		name += " on " + p.Spec.NodeName
	}
	what := fmt.Sprintf("%s is %s", name, p.Status.Phase)
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return nil
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			return &NotReadyError{What: fmt.Sprintf("%s is not scheduled: %s", name, c.Message)}
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		waiting, ended := c.State.Waiting, c.State.Terminated
		switch {
		case waiting != nil && (waiting.Reason == "ErrImagePull" || waiting.Reason == "ImagePullBackOff"):
			return &NotReadyError{What: fmt.Sprintf("%s: image %s: %s: %s", name, c.Image, waiting.Reason, waiting.Message),
				Remedy: imageRemedy(build)}
		case waiting != nil && waiting.Reason != "PodInitializing":
			what = fmt.Sprintf("%s: container %s: %s", name, c.Name, waiting.Reason)
			if waiting.Message != "" {
				what += ": " + waiting.Message
			}
		case ended != nil && ended.ExitCode != 0:
			what = fmt.Sprintf("%s: container %s ended with exit code %d: %s", name, c.Name, ended.ExitCode, ended.Message)
		}
	}
	return &NotReadyError{What: what}
}

func imageRemedy(build string) string {
	if build == "" {
		return "does the node reach the registry, and does the registry have the image?"
	}
	return "does the node reach the registry, and does the image exist for Windows build " + build + "?"
}

// TigeraStatus is the condition that Calico's operator reports a part of Calico as available.
func (s *Server) TigeraStatus(part string) Condition {
	return Condition{Name: "TigeraStatus " + part, Look: func(ctx context.Context) error {
		live, err := s.Get(ctx, newObject("operator.tigera.io/v1", "TigeraStatus", "", part))
		if err != nil {
			return err
		}
		if live == nil {
			return &NotReadyError{What: "the operator has not reported it yet"}
		}
		available, degraded := conditionOf(live, "Available"), conditionOf(live, "Degraded")
		switch {
		case degraded == nil:
			return &NotReadyError{What: "Degraded: " + conditionText(live, "Degraded")}
		case available != nil && conditionText(live, "Progressing") != "":
			return &NotReadyError{What: "Progressing: " + conditionText(live, "Progressing")}
		}
		return available
	}}
}

// conditionText returns the reason and message of a condition; "" if the condition is missing.
func conditionText(o *unstructured.Unstructured, kind string) string {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range all {
		if c, _ := item.(map[string]any); c["type"] == kind {
			return reason(c)
		}
	}
	return ""
}

// OnAll is the condition that a DaemonSet has a Ready pod on each node that it is for.
func (s *Server) OnAll(namespace, name string) Condition {
	return Condition{Name: name, Look: func(ctx context.Context) error {
		d, err := s.daemonSet(ctx, namespace, name)
		if err != nil {
			return err
		}
		is := d.Status
		if is.ObservedGeneration >= d.Generation && is.UpdatedNumberScheduled >= is.DesiredNumberScheduled &&
			is.NumberReady >= is.DesiredNumberScheduled {
			return nil
		}
		return s.podReason(ctx, namespace, d.Spec.Selector,
			fmt.Sprintf("%d of %d pods are Ready", is.NumberReady, is.DesiredNumberScheduled))
	}}
}

// daemonSet returns a DaemonSet, or a *NotReadyError if it does not exist.
func (s *Server) daemonSet(ctx context.Context, namespace, name string) (*appsv1.DaemonSet, error) {
	d, err := s.cluster.Clientset().AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, &NotReadyError{What: fmt.Sprintf("DaemonSet %s/%s does not exist", namespace, name)}
	}
	return d, s.cluster.Failure("read DaemonSet "+name, cluster.Permission{Verb: "get", Group: appsv1.GroupName,
		Resource: "daemonsets", Namespace: namespace, Name: name}, err)
}

// OnWindows is the condition that a DaemonSet has a Ready pod on each of the Windows nodes.
func (s *Server) OnWindows(namespace, name string, nodes []WindowsNode) Condition {
	return Condition{Name: name + " on Windows nodes", Look: func(ctx context.Context) error {
		d, err := s.daemonSet(ctx, namespace, name)
		if err != nil {
			return err
		}
		pods, err := s.pods(ctx, namespace, d.Spec.Selector)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == n.Name })
			if i < 0 {
				return &NotReadyError{What: "it has no pod on " + n.Name}
			}
			if err := notReady(&pods[i], n.Build); err != nil {
				return err
			}
		}
		return nil
	}}
}
