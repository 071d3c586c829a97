package evidence

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/wait"
)

// stream lists the objects of one kind and follows their changes. T is a pointer to an object, L a list.
type stream[T runtime.Object, L metav1.ListInterface] struct {
	options metav1.ListOptions // the selectors
	list    func(context.Context, metav1.ListOptions) (L, error)
	items   func(L) []T
	watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// take gets each object, and each later state of it. gone is true for its last state, when it was
	// deleted.
	take func(object T, gone bool)
}

// run follows the objects until ctx ends. A watch that ends is begun again, after a pause unless it has
// lasted long. failed gets the errors.
func (s stream[T, L]) run(ctx context.Context, failed func(error)) {
	for ctx.Err() == nil {
		begun := time.Now()
		err := s.once(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failed(err)
		case time.Since(begun) > watchLimit/2:
			continue
		}
		if wait.For(ctx, relist) != nil {
			return
		}
	}
}

// once lists the objects, and follows their changes until the watch ends.
func (s stream[T, L]) once(ctx context.Context) error {
	version := ""
	err := cluster.Pages(ctx, func(ctx context.Context, o metav1.ListOptions) (L, error) {
		ctx, cancel := context.WithTimeout(ctx, listLimit)
		defer cancel()
		o.LabelSelector = s.options.LabelSelector
		return s.list(ctx, o)
	}, func(page L) {
		version = page.GetResourceVersion()
		for _, object := range s.items(page) {
			s.take(object, false)
		}
	})
	if err != nil {
		return err
	}
	o := s.options
	o.ResourceVersion, o.TimeoutSeconds = version, new(int64(watchLimit.Seconds()))
	changes, err := s.watch(ctx, o)
	if err != nil {
		return err
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case change, ok := <-changes.ResultChan():
			if !ok {
				return nil
			}
			if err := s.change(change); err != nil {
				return err
			}
		}
	}
}

func (s stream[T, L]) change(e watch.Event) error {
	if e.Type == watch.Error {
		if err := apierrors.FromObject(e.Object); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return err
		}
		return nil
	}
	object, ok := e.Object.(T)
	if !ok {
		if e.Type == watch.Bookmark {
			return nil
		}
		return errors.New("the API server has sent an object of another kind")
	}
	if e.Type != watch.Bookmark {
		s.take(object, e.Type == watch.Deleted)
	}
	return nil
}

// pointers returns the addresses of the elements.
func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
