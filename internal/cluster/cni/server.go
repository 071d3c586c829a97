package cni

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

const (
	// Manager is swdt's field manager: it owns the fields that swdt has applied.
	Manager = "swdt"
	// Label is on each object that swdt created for a pod network. Its value is the network.
	Label = "swdt.dev/network"
)

// Server compares objects with a cluster, and applies them. It is safe for concurrent use.
type Server struct {
	// Take has the arguments of the swdt command that takes fields from other managers. Default: that of
	// the object's pod network.
	Take []string
	// As is the field manager. Default: Manager.
	As string

	cluster *cluster.Cluster

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]metav1.APIResource // kinds that the API server has
}

// NewServer returns the Server of a cluster. It contacts nothing.
func NewServer(c *cluster.Cluster) *Server {
	return &Server{cluster: c, kinds: map[schema.GroupVersionKind]metav1.APIResource{}}
}

// Cluster returns the cluster.
func (s *Server) Cluster() *cluster.Cluster { return s.cluster }

// resource returns the client for an object's kind. known is false if the API server does not
// have the kind.
func (s *Server) resource(ctx context.Context, o *unstructured.Unstructured) (client dynamic.ResourceInterface,
	known bool, err error) {
	kind, known, err := s.kind(ctx, o.GroupVersionKind())
	if err != nil || !known {
		return nil, known, err
	}
	all := s.cluster.Dynamic().Resource(o.GroupVersionKind().GroupVersion().WithResource(kind.Name))
	if !kind.Namespaced {
		return all, true, nil
	}
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return all.Namespace(namespace), true, nil
}

func (s *Server) kind(ctx context.Context, kind schema.GroupVersionKind) (metav1.APIResource, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.kinds[kind]; ok {
		return found, true, nil
	}
	client := discovery.ToDiscoveryInterfaceWithContext(s.cluster.Clientset().Discovery())
	list, err := client.ServerResourcesForGroupVersionWithContext(ctx, kind.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return metav1.APIResource{}, false, nil
	}
	if err != nil {
		return metav1.APIResource{}, false, s.cluster.Failure("look for the kinds of "+kind.GroupVersion().String(),
			cluster.Permission{Verb: "get", Resource: "/apis"}, err)
	}
	for _, r := range list.APIResources {
		if r.Kind == kind.Kind && !strings.Contains(r.Name, "/") {
			s.kinds[kind] = r
			return r, true, nil
		}
	}
	return metav1.APIResource{}, false, nil
}

// permission returns the permission to do verb with an object.
func permission(verb string, o *unstructured.Unstructured, resource string) cluster.Permission {
	return cluster.Permission{Verb: verb, Group: o.GroupVersionKind().Group, Resource: resource,
		Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Get returns the object of the cluster that has the kind and name of o; nil if the cluster has
// no such object, or no such kind.
func (s *Server) Get(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	client, known, err := s.resource(ctx, o)
	if err != nil || !known {
		return nil, err
	}
	live, err := client.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.cluster.Failure("read "+RefOf(o).String(), permission("get", o, strings.ToLower(o.GetKind())), err)
	}
	return live, nil
}

// Compare returns the change that applying o makes. It has the API server apply o without storing
// the result, so it also finds a value that the API server rejects. Fields that another manager
// owns are a *ConflictError, unless force is set.
func (s *Server) Compare(ctx context.Context, o *unstructured.Unstructured, force bool) (Difference, error) {
	d := Difference{Object: RefOf(o), wanted: o, forced: force}
	live, err := s.Get(ctx, o)
	if err != nil {
		return d, err
	}
	if live == nil {
		d.Create = true
		return d, s.tryToCreate(ctx, o)
	}
	if !isOurs(live) { // do not label an object that swdt did not create
		d.wanted = withoutLabel(o)
	}
	result, err := s.patch(ctx, d.wanted, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, Force: &force})
	if !apierrors.IsConflict(err) {
		if err == nil {
			d.Fields = compare(live, result)
		}
		return d, err
	}
	conflict := s.conflict(o, err)
	taken := true
	result, err = s.patch(ctx, d.wanted, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, Force: &taken})
	if err == nil {
		conflict.Fields = compare(live, result)
	}
	return d, conflict
}

// tryToCreate has the API server check an object that does not exist yet. If the object's kind or
// namespace is missing, tryToCreate returns nil, since an earlier step creates it.
func (s *Server) tryToCreate(ctx context.Context, o *unstructured.Unstructured) error {
	if _, known, err := s.resource(ctx, o); err != nil || !known {
		return err
	}
	_, err := s.patch(ctx, o, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Apply makes the change that Compare found.
func (s *Server) Apply(ctx context.Context, d Difference) error {
	_, err := s.patch(ctx, d.wanted, metav1.PatchOptions{Force: &d.forced})
	if apierrors.IsConflict(err) {
		return s.conflict(d.wanted, err)
	}
	return err
}

// patch applies o. A conflict is returned as the API server's own error.
func (s *Server) patch(ctx context.Context, o *unstructured.Unstructured, options metav1.PatchOptions) (
	*unstructured.Unstructured, error) {
	client, known, err := s.resource(ctx, o)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, &UnknownKindError{o.GroupVersionKind()}
	}
	content, err := json.Marshal(o.Object)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", RefOf(o), err)
	}
	options.FieldManager = cmp.Or(s.As, Manager)
	result, err := client.Patch(ctx, o.GetName(), types.ApplyPatchType, content, options)
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return result, err
	}
	return nil, s.cluster.Failure("apply "+RefOf(o).String(), permission("patch", o, strings.ToLower(o.GetKind())), err)
}

func withoutLabel(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	labels := o.GetLabels()
	delete(labels, Label)
	if len(labels) == 0 {
		labels = nil
	}
	o.SetLabels(labels)
	return o
}

// Labelled returns a copy of o with swdt's label.
func Labelled(o *unstructured.Unstructured, n Network) *unstructured.Unstructured {
	o = o.DeepCopy()
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[Label] = string(n)
	o.SetLabels(labels)
	return o
}

// owned returns the fields of an object that swdt has applied.
func owned(o *unstructured.Unstructured) *fieldpath.Set {
	all := &fieldpath.Set{}
	if o == nil {
		return all
	}
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == Manager && entry.Operation == metav1.ManagedFieldsOperationApply {
			all = all.Union(FieldsOf(entry))
		}
	}
	return all
}

// FieldsOf returns the fields that an entry about a manager names; none if the entry cannot be read.
func FieldsOf(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	fields := &fieldpath.Set{}
	if entry.FieldsV1 == nil || fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
		return &fieldpath.Set{}
	}
	return fields
}

// ConflictError reports fields that another manager owns with other values.
type ConflictError struct {
	Object    Ref
	Take      []string // the arguments of the swdt command that takes the fields
	Conflicts []Conflict
	Fields    []Field // the change that --force makes; empty if the change is not known
	Err       error
}

// Conflict is one field with conflicting values.
type Conflict struct {
	Path    string // .spec.calicoNetwork.bgp
	Message string // names the other manager
}

func (s *Server) conflict(o *unstructured.Unstructured, err error) *ConflictError {
	conflict := &ConflictError{Object: RefOf(o), Take: s.Take, Err: err}
	if network := Network(o.GetLabels()[Label]); len(s.Take) == 0 {
		conflict.Take = []string{"network", "install", string(network), "--force"}
		if network == "" || network == Networks()[0] {
			conflict.Take = []string{"network", "install", "--force"}
		}
	}
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil {
		return conflict
	}
	for _, cause := range status.Status().Details.Causes {
		conflict.Conflicts = append(conflict.Conflicts, Conflict{Path: cause.Field, Message: cause.Message})
	}
	return conflict
}

func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "apply %s: fields that other managers own have other values than are needed:", e.Object)
	for _, c := range e.Conflicts {
		fmt.Fprintf(&b, "\n  %s: %s", c.Path, c.Message)
	}
	for _, f := range e.Fields {
		fmt.Fprintf(&b, "\n  %s", f)
	}
	fmt.Fprintf(&b, "\nchange them yourself, or have swdt take these fields: %s", remedy.Command(e.Take...))
	return b.String()
}

func (e *ConflictError) Unwrap() error { return e.Err }

// UnknownKindError reports a kind that the API server does not have.
type UnknownKindError struct{ Kind schema.GroupVersionKind }

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("the API server has no kind %s of %s: is its CustomResourceDefinition or its API server missing?",
		e.Kind.Kind, e.Kind.GroupVersion())
}
