package onnode

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
)

// watch returns a channel that has the newest NodeState of this node, or nil after its end. An older
// state that was not received is dropped.
func watch(ctx context.Context, client dynamic.Interface, node string) <-chan *fleetv1.NodeState {
	newest := make(chan *fleetv1.NodeState, 1)
	put := func(object any) {
		select {
		case <-newest:
		default:
		}
		newest <- stateOf(object)
	}
	informer := cluster.NewInformer(client, fleetv1.StateResource(), node)
	// The handler's functions are called one after the other. AddEventHandler fails only after a stop.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, object any) { put(object) },
		DeleteFunc: func(any) { put(nil) },
	})
	go informer.RunWithContext(ctx)
	return newest
}

func stateOf(object any) *fleetv1.NodeState {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	var s fleetv1.NodeState
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
		return nil // the schema allows no such object
	}
	return &s
}
