package programmed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/wait"
)

// annotation is the one of Services whose change makes kube-proxy program a Service again (pkg/proxy/winkernel/proxier.go,
// newServiceInfo): only "disabled" differs from all other values.
const annotation = "winProxyOptimization"

// patchTimeout bounds one change of a Service. A change also ends after Ctrl-C, so that its result is known.
const patchTimeout = 10 * time.Second

// Touch makes kube-proxy program the Services of a plan again: it changes their annotation, waits Settle, and changes it
// back. It does so for each Service of which an object was removed, also after Ctrl-C, since the Service may be missing
// until then. It skips other Services after Ctrl-C, and those of which no object was removed because a removal was skipped.
// Removals are the steps that removed objects. A Service that no longer exists counts as gone.
func Touch(ctx context.Context, client kubernetes.Interface, o Options, plan, removals []Repair, r ui.Reporter) ([]Repair, error) {
	plan = slices.DeleteFunc(slices.Clone(plan), func(p Repair) bool { return p.Action != TouchService })
	if len(plan) == 0 {
		return plan, nil
	}
	t := toucher{client: client}
	removed, skipped := servicesOf(removals, Repaired, Failed), servicesOf(removals, Skipped)
	after := ctx // bounds the wait
	touches := make([]touch, len(plan))
	for i, p := range plan {
		if !removed[p.Service] && (skipped[p.Service] || ctx.Err() != nil) {
			plan[i].Result = Skipped
			continue
		}
		if removed[p.Service] {
			after = context.WithoutCancel(ctx)
		}
		r.Step("touching Service %s", p.Service)
		touches[i] = t.change(ctx, p.Service)
	}
	var failed []error
	if err := wait.For(after, o.Settle); err != nil {
		failed = append(failed, context.Cause(ctx))
	}
	for i, p := range plan {
		if p.Result == Skipped {
			continue
		}
		err := touches[i].err
		if touches[i].tried {
			err = errors.Join(err, t.restore(ctx, p.Service, touches[i].former))
		}
		switch {
		case apierrors.IsNotFound(err):
			plan[i].Result = Gone
		case err != nil:
			plan[i].Result, plan[i].Error = Failed, err.Error()
			failed = append(failed, fmt.Errorf("touch Service %s: %w", p.Service, err))
		default:
			plan[i].Result = Repaired
		}
	}
	return plan, errors.Join(failed...)
}

// servicesOf returns the Services of the steps with one of the results.
func servicesOf(steps []Repair, results ...string) map[string]bool {
	all := map[string]bool{}
	for _, step := range steps {
		if step.Service != "" && slices.Contains(results, step.Result) {
			all[step.Service] = true
		}
	}
	return all
}

// touch is the first change of a Service.
type touch struct {
	former *string // the annotation before; nil: none
	tried  bool    // the annotation may have changed, even if err is not nil
	err    error
}

type toucher struct{ client kubernetes.Interface }

// change changes the annotation so that kube-proxy sees another value.
func (t toucher) change(ctx context.Context, service string) (done touch) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patchTimeout)
	defer cancel()
	namespace, name, _ := strings.Cut(service, "/")
	object, err := t.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		done.err = err
		return done
	}
	other := "disabled"
	if value, ok := object.Annotations[annotation]; ok {
		done.former = &value
		if strings.EqualFold(value, other) {
			other = "enabled"
		}
	}
	done.tried, done.err = true, t.annotate(ctx, service, &other)
	return done
}

// restore sets the former annotation. Its error names the command that does the same.
func (t toucher) restore(ctx context.Context, service string, former *string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patchTimeout)
	defer cancel()
	err := t.annotate(ctx, service, former)
	if err == nil || apierrors.IsNotFound(err) {
		return err
	}
	namespace, name, _ := strings.Cut(service, "/")
	value := annotation + "-"
	if former != nil {
		value = annotation + "=" + *former
	}
	return fmt.Errorf("change the annotation %s back: %w; do it by hand: `kubectl annotate service --overwrite -n %s %s %s`",
		annotation, err, namespace, name, remedy.POSIX.Quote(value))
}

// annotate sets the annotation; nil removes it.
func (t toucher) annotate(ctx context.Context, service string, value *string) error {
	namespace, name, _ := strings.Cut(service, "/")
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{annotation: value}}})
	if err != nil {
		return err
	}
	_, err = t.client.CoreV1().Services(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "swdt"})
	return err
}
