package lintlive

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/lint"
)

// Subject is a pod to explain, or a workload with its pods.
type Subject struct {
	Namespace, Name string
	kind            resource
}

// subjects returns what can be explained, with the short names of kubectl.
func subjects() map[string]resource {
	core, apps, batch := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	all := map[string]resource{}
	for _, one := range []struct {
		kind  resource
		short string
	}{{resource{core, "Pod", "pods", false}, "po"}, {resource{apps, "Deployment", "deployments", false}, "deploy"},
		{resource{apps, "ReplicaSet", "replicasets", false}, "rs"}, {resource{apps, "StatefulSet", "statefulsets", false}, "sts"},
		{resource{apps, "DaemonSet", "daemonsets", false}, "ds"}, {resource{batch, "Job", "jobs", false}, "job"}} {
		all[one.short], all[one.kind.plural], all[strings.ToLower(one.kind.kind)] = one.kind, one.kind, one.kind
	}
	return all
}

// UnknownKindError reports a kind that cannot be explained.
type UnknownKindError struct{ Kind string }

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("there are no pods of a kind %q: use pod, deployment, replicaset, statefulset, daemonset or job", e.Kind)
}

// ParseSubject reads NAME of a pod, or KIND/NAME. The error is an *UnknownKindError.
func ParseSubject(text, namespace string) (Subject, error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok {
		kind, name = "pod", text
	}
	is, known := subjects()[strings.ToLower(kind)]
	if !known {
		return Subject{}, &UnknownKindError{kind}
	}
	return Subject{Namespace: namespace, Name: name, kind: is}, nil
}

// NoSuchObjectError reports a subject that the cluster does not have.
type NoSuchObjectError struct{ Subject Subject }

func (e *NoSuchObjectError) Error() string {
	return fmt.Sprintf("namespace %s has no %s %q", e.Subject.Namespace, strings.ToLower(e.Subject.kind.kind), e.Subject.Name)
}

// Explain hands a pod to r, or a workload with its pods, their status, and the warnings about all of them. If the cluster
// does not have it, the error is a *NoSuchObjectError.
func Explain(ctx context.Context, c *cluster.Cluster, r *lint.Reader, s Subject) error {
	family, err := s.family(ctx, c)
	if err != nil {
		return err
	}
	if len(family) == 0 {
		return &NoSuchObjectError{s}
	}
	for i, o := range family {
		take := r.LiveStatus // its maker has its template
		if i == 0 {
			take = r.Live
		}
		if err := hand(o, take); err != nil {
			return err
		}
	}
	events := resource{corev1.SchemeGroupVersion, "Event", "events", false}
	err = events.each(ctx, c, s.Namespace, "type=Warning", func(o *unstructured.Unstructured) error {
		kind, _, _ := unstructured.NestedString(o.Object, "involvedObject", "kind")
		name, _, _ := unstructured.NestedString(o.Object, "involvedObject", "name")
		if !slices.ContainsFunc(family, func(of *unstructured.Unstructured) bool { return of.GetKind() == kind && of.GetName() == name }) {
			return nil
		}
		return hand(o, r.LiveStatus)
	})
	if err != nil {
		return err
	}
	return Around(ctx, c, r)
}

// family returns the subject, the objects that it makes, and theirs.
func (s Subject) family(ctx context.Context, c *cluster.Cluster) (all []*unstructured.Unstructured, err error) {
	levels := []resource{s.kind}
	if s.kind.kind == "Deployment" {
		levels = append(levels, subjects()["rs"])
	}
	if s.kind.kind != "Pod" {
		levels = append(levels, subjects()["po"])
	}
	for i, level := range levels {
		makers := all
		err := level.each(ctx, c, s.Namespace, "", func(o *unstructured.Unstructured) error {
			maker := metav1.GetControllerOf(o)
			if i == 0 && o.GetName() == s.Name || maker != nil && slices.ContainsFunc(makers, func(m *unstructured.Unstructured) bool { return m.GetUID() == maker.UID }) {
				all = append(all, o.DeepCopy())
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
