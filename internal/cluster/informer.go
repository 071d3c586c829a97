package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// NewInformer returns an informer of the objects of a resource in all namespaces, which are
// *unstructured.Unstructured. If name is not "", only objects of that name are watched. The informer is
// not started yet. client-go's dynamicinformer does the same, but links the informers of every API group.
func NewInformer(client dynamic.Interface, resource schema.GroupVersionResource, name string) cache.SharedIndexInformer {
	limit := func(o metav1.ListOptions) metav1.ListOptions {
		if name != "" {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}
		return o
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.Resource(resource).List(ctx, limit(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Resource(resource).Watch(ctx, limit(o))
		},
	}
	return cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(source, client),
		&unstructured.Unstructured{}, cache.SharedIndexInformerOptions{ObjectDescription: resource.String()})
}
