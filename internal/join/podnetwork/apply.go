package podnetwork

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// kindLimit bounds the wait for the API server to serve a new kind.
const kindLimit = 30 * time.Second

// applyStep applies objects to the cluster.
type applyStep struct {
	work    *work
	name    string
	present string // the step's text if there is nothing to do
	// objects returns the wanted objects. They may depend on the objects that the cluster has, so
	// objects is called again for each comparison.
	objects func(context.Context) ([]*unstructured.Unstructured, error)
	// afterChange is the message if an object that existed was changed; usually empty.
	afterChange string
}

// fixed returns an objects function for wanted objects that do not depend on the cluster.
func fixed(all ...*unstructured.Unstructured) func(context.Context) ([]*unstructured.Unstructured, error) {
	return func(context.Context) ([]*unstructured.Unstructured, error) { return all, nil }
}

func (s *applyStep) Name() string { return s.name }

func (s *applyStep) Plan(ctx context.Context) (plan.Change, error) {
	all, err := s.differences(ctx)
	if err != nil || len(all) == 0 {
		return plan.Change{Summary: s.present}, err
	}
	return plan.Change{Needed: true, Summary: summary(all), Detail: detail(all)}, nil
}

// differences compares all objects, so that all conflicts are in one error.
func (s *applyStep) differences(ctx context.Context) (all []cni.Difference, err error) {
	objects, err := s.objects(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, o := range objects {
		d, err := s.work.server.Compare(ctx, o, s.work.options.Force)
		var conflict *cni.ConflictError
		switch {
		case errors.As(err, &conflict):
			errs = append(errs, err)
		case err != nil:
			return nil, err
		case d.Needed():
			all = append(all, d)
		}
	}
	return all, errors.Join(errs...)
}

// Apply applies the objects. Kinds come before the objects of these kinds.
func (s *applyStep) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	objects, err := s.objects(ctx)
	if err != nil {
		return plan.Outcome{}, err
	}
	isCRD := func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" }
	first := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return !isCRD(o) })
	var kinds []cni.Condition
	for _, o := range first {
		if _, err := s.apply(ctx, o, r); err != nil {
			return plan.Outcome{}, err
		}
		kinds = append(kinds, s.work.server.Established(o))
	}
	if err := cni.Await(ctx, kinds, kindLimit, func(state string) { r.Debug("%s", state) }); err != nil {
		return plan.Outcome{}, err
	}
	outcome := plan.Outcome{}
	for _, o := range objects {
		if isCRD(o) {
			continue
		}
		changed, err := s.apply(ctx, o, r)
		if err != nil {
			return plan.Outcome{}, err
		}
		if changed {
			outcome.Message = s.afterChange
		}
	}
	return outcome, nil
}

// apply applies an object. It reports whether it changed an object that existed.
func (s *applyStep) apply(ctx context.Context, o *unstructured.Unstructured, r ui.Reporter) (changed bool, err error) {
	d, err := s.work.server.Compare(ctx, o, s.work.options.Force)
	if err != nil || !d.Needed() {
		return false, err
	}
	r.Debug("applying %s", d.Object)
	return !d.Create, s.work.server.Apply(ctx, d)
}

// summary describes differences in one line.
func summary(all []cni.Difference) string {
	var created, changed []cni.Ref
	for _, d := range all {
		if d.Create {
			created = append(created, d.Object)
		} else {
			changed = append(changed, d.Object)
		}
	}
	var parts []string
	if text := listed(created); text != "" {
		parts = append(parts, "create "+text)
	}
	if text := listed(changed); text != "" {
		parts = append(parts, "change "+text)
	}
	return strings.Join(parts, "; ")
}

// maxListed is the number of objects that one line names.
const maxListed = 3

func listed(all []cni.Ref) string {
	if len(all) > maxListed {
		return fmt.Sprintf("%d objects: %s, …", len(all), listed(all[:maxListed]))
	}
	var names []string
	for _, ref := range all {
		names = append(names, ref.String())
	}
	return strings.Join(names, ", ")
}

// maxDetailed is the number of differences up to which new objects are shown with their content. A
// whole manifest has more.
const maxDetailed = 8

// detail shows the differences. If there are more than maxDetailed differences, it shows only the
// names of new objects.
func detail(all []cni.Difference) string {
	var lines []string
	for _, d := range all {
		if d.Create && len(all) > maxDetailed {
			lines = append(lines, "create "+d.Object.String())
			continue
		}
		lines = append(lines, d.String())
	}
	return strings.Join(lines, "\n")
}
