package objectfix

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/format/redact"
)

// Options are those of a fix.
type Options struct {
	Table *kubesettings.Table
	// Force takes fields that other managers own.
	Force bool
	// Take has the arguments of the swdt command that takes fields from other managers.
	Take []string
}

// Fix has the planned changes of the objects of a cluster.
type Fix struct {
	server  *cni.Server
	options Options
	secrets *redact.Redactor
	planned []*planned
}

type planned struct {
	Change
	removals []upgradecheck.Removal
	before   []leaf
	after    []leaf
}

// Plan plans the removals from objects, and changes nothing. An object that cannot be changed has the reason in its Change.
func Plan(ctx context.Context, c *cluster.Cluster, removals []upgradecheck.Removal, o Options) (*Fix, error) {
	secrets, err := redact.New(nil)
	if err != nil {
		return nil, err
	}
	f := &Fix{server: cni.NewServer(c), options: o, secrets: secrets}
	f.server.As, f.server.Take = Manager, o.Take
	for _, name := range objectsOf(removals) {
		p := &planned{Change: Change{Object: name, Result: Planned, Fields: []Field{}, Owners: []Owner{}, Sources: []string{}}}
		for _, r := range removals {
			if r.Object == name {
				p.removals = append(p.removals, r)
			}
		}
		f.planned = append(f.planned, p)
		if err := f.plan(ctx, p); err != nil {
			p.fail(err)
		}
		if ctx.Err() != nil {
			return f, ctx.Err()
		}
	}
	return f, nil
}

// objectsOf returns the objects of removals, each once.
func objectsOf(removals []upgradecheck.Removal) (names []string) {
	for _, r := range removals {
		if r.Object != "" && !slices.Contains(names, r.Object) {
			names = append(names, r.Object)
		}
	}
	return names
}

// Changes returns the changes of all objects, as they are now.
func (f *Fix) Changes() []Change {
	all := []Change{}
	for _, p := range f.planned {
		all = append(all, p.Change)
	}
	return all
}

// Ready returns the number of objects that can be changed.
func (f *Fix) Ready() (n int) {
	for _, p := range f.planned {
		if p.Result == Planned {
			n++
		}
	}
	return n
}

// A GoneError reports an object that the cluster no longer has.
type GoneError struct{ Object string }

func (e *GoneError) Error() string {
	return "change " + e.Object + ": the cluster no longer has it; run the check again"
}

func (f *Fix) plan(ctx context.Context, p *planned) error {
	live, err := f.again(ctx, p)
	if err != nil {
		return err
	}
	p.Sources, p.Effect = append(p.Sources, sources(live)...), effects(live)
	changed, err := edited(f.options.Table, live, p.removals)
	if err != nil {
		return err
	}
	p.before, p.after = leaves(live), leaves(changed)
	for i, l := range p.after {
		if before := p.before[i].value; !same(before, l.value) {
			p.Fields = append(p.Fields, f.field(l.name, before, l.value))
			p.Owners = append(p.Owners, owners(live, l)...)
		}
	}
	if len(p.Fields) == 0 {
		p.Result = Unchanged
		return nil
	}
	_, err = f.compare(ctx, p, live)
	return err
}

// field returns the change of a field for a reader, without secrets.
func (f *Fix) field(name string, before, after any) Field {
	lines := func(value any) []string { return linesOf(value, f.secrets.String) }
	return Field{Name: name, Before: lines(before), After: lines(after)}
}

// compare has the API server make the change without storing it.
func (f *Fix) compare(ctx context.Context, p *planned, live *unstructured.Unstructured) (cni.Difference, error) {
	difference, err := f.server.Compare(ctx, wanted(live, p.before, p.after), f.options.Force)
	if err == nil && !difference.Needed() {
		err = &KeptError{Object: p.Object}
	}
	return difference, err
}

// A KeptError reports a change that the API server does not keep: a webhook puts the old value back.
type KeptError struct{ Object string }

func (e *KeptError) Error() string {
	return fmt.Sprintf("change %s: the API server accepts the change and keeps the old value, as with an admission webhook; "+
		"change the source of the object", e.Object)
}

// parse returns an object with the kind and the name of a place such as ConfigMap kube-system/kube-proxy.
func parse(name string) (*unstructured.Unstructured, error) {
	kind, full, _ := strings.Cut(name, " ")
	namespace, object, ok := strings.Cut(full, "/")
	group, known := map[string]schema.GroupVersion{"ConfigMap": corev1.SchemeGroupVersion, "DaemonSet": appsv1.SchemeGroupVersion,
		"Deployment": appsv1.SchemeGroupVersion, "StatefulSet": appsv1.SchemeGroupVersion}[kind]
	if !ok || !known {
		return nil, &PlaceError{Field: name, Why: "swdt changes ConfigMaps, DaemonSets, Deployments and StatefulSets"}
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(group.WithKind(kind))
	o.SetNamespace(namespace)
	o.SetName(object)
	return o, nil
}

// Apply makes the planned changes, one object after the other, and reads each object again.
func (f *Fix) Apply(ctx context.Context) error {
	for _, p := range f.planned {
		if p.Result != Planned {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := f.apply(ctx, p); err != nil {
			p.fail(err)
			continue
		}
		p.Result = Changed
	}
	return ctx.Err()
}

// mostTries bounds the applies of one object: its status may change between its reading and the apply.
const mostTries = 5

func (f *Fix) apply(ctx context.Context, p *planned) (err error) {
	for range mostTries {
		var live *unstructured.Unstructured
		if live, err = f.again(ctx, p); err != nil {
			return err
		}
		if !isSame(leaves(live), p.before) {
			return &ChangedError{Object: p.Object}
		}
		var difference cni.Difference
		if difference, err = f.compare(ctx, p, live); err == nil {
			err = f.server.Apply(ctx, difference)
		}
		var conflict *cni.ConflictError
		if !errors.As(err, &conflict) || len(conflict.Conflicts) > 0 {
			break
		}
	}
	if err != nil {
		return err
	}
	if err := f.verify(ctx, p); err != nil {
		return &UnverifiedError{Object: p.Object, Err: err}
	}
	return nil
}

// An UnverifiedError reports an object that was changed, and that could not be read again or has other values than the plan.
type UnverifiedError struct {
	Object string
	Err    error
}

func (e *UnverifiedError) Error() string {
	return e.Object + " was changed, and it is not known to be as planned: " + e.Err.Error() + "; run the check again"
}
func (e *UnverifiedError) Unwrap() error { return e.Err }

// verify returns an error if the object still has one of the settings, or another value than the plan.
func (f *Fix) verify(ctx context.Context, p *planned) error {
	live, err := f.again(ctx, p)
	if err != nil {
		return err
	}
	changed, err := edited(f.options.Table, live, p.removals)
	switch {
	case err != nil:
		return err
	case !isSame(leaves(live), leaves(changed)):
		return &KeptError{Object: p.Object}
	case !isSame(full(leaves(live)), full(p.after)):
		return &ChangedError{Object: p.Object}
	}
	return nil
}

// again reads an object of the plan.
func (f *Fix) again(ctx context.Context, p *planned) (*unstructured.Unstructured, error) {
	reference, err := parse(p.Object)
	if err != nil {
		return nil, err
	}
	live, err := f.server.Get(ctx, reference)
	if err == nil && live == nil {
		err = &GoneError{Object: p.Object}
	}
	return live, err
}

// isSame reports whether two objects have the same fields, with the same values.
func isSame(a, b []leaf) bool {
	return slices.EqualFunc(a, b, func(a, b leaf) bool { return a.name == b.name && same(a.value, b.value) })
}

// full returns the fields that have a value: the API server leaves out a field without one.
func full(all []leaf) []leaf {
	return slices.DeleteFunc(slices.Clone(all), func(l leaf) bool {
		items, isList := l.value.([]any)
		return l.value == nil || l.value == "" || isList && len(items) == 0
	})
}

// A ChangedError reports an object whose fields have changed since the plan.
type ChangedError struct{ Object string }

func (e *ChangedError) Error() string {
	return "change " + e.Object + ": its fields have changed since they were read; run the command again"
}

// fail records why an object cannot be changed.
func (p *planned) fail(err error) {
	p.Result, p.Message, p.err = Failed, err.Error(), err
	var conflict *cni.ConflictError
	if !errors.As(err, &conflict) {
		return
	}
	if len(conflict.Conflicts) > 0 {
		conflict.Fields = nil // Fields of the change has them
		p.Result, p.Message = Conflict, err.Error()
		return
	}
	p.err = &ChangedError{Object: p.Object} // not about fields, but about the version that the change was made of
	p.Message = p.err.Error()
}

func same(a, b any) bool { return reflect.DeepEqual(a, b) }
