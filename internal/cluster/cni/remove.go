package cni

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// Made has the objects that swdt has created in a cluster, in the order in which they are removed.
type Made struct {
	// Configuration has the settings. If they are deleted, the network's programs remove their own
	// objects.
	Configuration []*unstructured.Unstructured
	Objects       []*unstructured.Unstructured // programs, accounts, rights
	Namespaces    []*unstructured.Unstructured
	Kinds         []*unstructured.Unstructured // CustomResourceDefinitions
}

// Made finds the objects of a network by swdt's label, among all kinds that the API server has. An
// object that has an owner is not in the result: it is removed with the owner.
func (s *Server) Made(ctx context.Context, n Network) (Made, error) {
	kinds, err := s.listable(ctx)
	if err != nil {
		return Made{}, err
	}
	var made Made
	for _, kind := range kinds {
		list, err := s.cluster.Dynamic().Resource(kind).List(ctx, metav1.ListOptions{LabelSelector: Label + "=" + string(n)})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsServiceUnavailable(err) {
			continue
		}
		if err != nil {
			return Made{}, s.cluster.Failure("list "+kind.GroupResource().String(),
				cluster.Permission{Verb: "list", Group: kind.Group, Resource: kind.Resource}, err)
		}
		for i := range list.Items {
			if len(list.Items[i].GetOwnerReferences()) == 0 {
				made.add(&list.Items[i])
			}
		}
	}
	return made, nil
}

func (m *Made) add(o *unstructured.Unstructured) {
	switch group := o.GroupVersionKind().Group; {
	case o.GetKind() == "CustomResourceDefinition":
		m.Kinds = append(m.Kinds, o)
	case group == "" && o.GetKind() == "Namespace":
		m.Namespaces = append(m.Namespaces, o)
	case group == "operator.tigera.io":
		m.Configuration = append(m.Configuration, o)
	default:
		m.Objects = append(m.Objects, o)
	}
}

// listable returns the kinds that can be listed and deleted, each in the version that the API
// server prefers. It omits a group whose own API server does not answer.
func (s *Server) listable(ctx context.Context) ([]schema.GroupVersionResource, error) {
	client := discovery.ToDiscoveryInterfaceWithContext(s.cluster.Clientset().Discovery())
	lists, err := client.ServerPreferredResourcesWithContext(ctx)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, s.cluster.Failure("look for the API server's kinds",
			cluster.Permission{Verb: "get", Resource: "/apis"}, err)
	}
	var all []schema.GroupVersionResource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && !isCopy(version.Group, r.Name) {
				all = append(all, version.WithResource(r.Name))
			}
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionResource) int {
		return cmp.Compare(a.GroupResource().String(), b.GroupResource().String())
	})
	return all, nil
}

// isCopy reports whether the objects of a kind take their labels from other objects, or are also
// listed under another kind.
func isCopy(group, resource string) bool {
	return slices.Contains([]string{"events", "endpoints", "endpointslices"}, resource) || group == "metrics.k8s.io"
}

// Delete deletes an object that swdt has created. It is no error if the object is gone.
func (s *Server) Delete(ctx context.Context, o *unstructured.Unstructured) error {
	client, known, err := s.resource(ctx, o)
	if err != nil || !known {
		return err
	}
	uid, background := o.GetUID(), metav1.DeletePropagationBackground
	err = client.Delete(ctx, o.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // the object is gone, or another object has its name
		return nil
	}
	return s.cluster.Failure("delete "+RefOf(o).String(), permission("delete", o, strings.ToLower(o.GetKind())), err)
}

// Gone is the condition that an object was deleted.
func (s *Server) Gone(o *unstructured.Unstructured) Condition {
	return Condition{Name: "the end of " + RefOf(o).String(), Look: func(ctx context.Context) error {
		live, err := s.Get(ctx, o)
		switch {
		case err != nil:
			return err
		case live == nil || live.GetUID() != o.GetUID():
			return nil
		case len(live.GetFinalizers()) > 0:
			return &NotReadyError{What: "its finalizers " + strings.Join(live.GetFinalizers(), ", ") + " remain",
				Remedy: "does the program that removes them run?"}
		}
		if remaining := conditionText(live, "NamespaceContentRemaining"); remaining != "" {
			return &NotReadyError{What: remaining, Remedy: "pods end only if their nodes' kubelets run"}
		}
		return &NotReadyError{What: "it still exists"}
	}}
}

// TurnWindowsOff removes the data plane of Windows from an Installation that swdt did not create
// but completed. The other fields of the Installation stay as they are, since Linux nodes use
// them too. needed reports whether swdt owns the field of the data plane; if not, nothing is
// changed. With dryRun, TurnWindowsOff only determines needed.
func (s *Server) TurnWindowsOff(ctx context.Context, dryRun bool) (needed bool, err error) {
	live, err := s.Installation(ctx)
	if err != nil || live == nil || isOurs(live) {
		return false, err
	}
	rest, needed := withoutWindows(live)
	if dryRun || !needed {
		return needed, nil
	}
	_, err = s.patch(ctx, rest, metav1.PatchOptions{})
	return true, err
}

// withoutWindows returns the fields of an Installation that swdt continues to apply: those that
// swdt owns, except the data plane of Windows. The API server removes a field that swdt owned and
// no longer applies. needed reports whether swdt owns the field of the data plane.
func withoutWindows(live *unstructured.Unstructured) (rest *unstructured.Unstructured, needed bool) {
	rest, ours := installationObject(), owned(live)
	for _, s := range installationSettings(Wanted{}) {
		if !ours.Has(fieldpath.MakePathOrDie(anyPath(s.path)...)) {
			continue
		}
		if s.path[len(s.path)-1] == windowsDataplane {
			needed = true
			continue
		}
		if value, exists := liveField(live, s.path); exists {
			_ = unstructured.SetNestedField(rest.Object, value, s.path...) // cannot fail: the maps are new
		}
	}
	return rest, needed
}

// Others returns the workloads and ConfigMaps in a namespace, for people. It omits objects that
// swdt created and objects that have an owner.
func (s *Server) Others(ctx context.Context, namespace string) ([]string, error) {
	var all []string
	for _, kind := range []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "daemonsets"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "pods"},
	} {
		list, err := s.cluster.Dynamic().Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, s.cluster.Failure("list the "+kind.Resource+" of namespace "+namespace,
				cluster.Permission{Verb: "list", Group: kind.Group, Resource: kind.Resource, Namespace: namespace}, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if !isOurs(o) && len(o.GetOwnerReferences()) == 0 && o.GetName() != "kube-root-ca.crt" {
				all = append(all, RefOf(o).String())
			}
		}
	}
	return all, nil
}

// Used returns the number of objects of a CustomResourceDefinition's kind.
func (s *Server) Used(ctx context.Context, crd *unstructured.Unstructured) (int, error) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if version["served"] != true {
			continue
		}
		list, err := s.cluster.Dynamic().Resource(schema.GroupVersionResource{Group: group, Version: name, Resource: plural}).
			List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		if err != nil {
			return 0, s.cluster.Failure("list "+plural+"."+group, cluster.Permission{Verb: "list", Group: group,
				Resource: plural}, err)
		}
		return len(list.Items), nil
	}
	return 0, nil
}

// DeleteAndWait deletes objects and waits until each is gone, at most limit for each.
func (s *Server) DeleteAndWait(ctx context.Context, all []*unstructured.Unstructured, limit time.Duration,
	report func(state string)) error {
	var gone []Condition
	for _, o := range all {
		if err := s.Delete(ctx, o); err != nil {
			return err
		}
		gone = append(gone, s.Gone(o))
	}
	if err := Await(ctx, gone, limit, report); err != nil {
		return fmt.Errorf("remove what swdt has made: %w", err)
	}
	return nil
}
