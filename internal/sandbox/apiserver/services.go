package apiserver

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// giveClusterIP sets the cluster IP of a new Service that has none, as the API server does. Services are
// numbered in the order in which they are made, in 10.97.0.0/16 and up.
func (c *Cluster) giveClusterIP(o object) {
	spec, ok := o["spec"].(object)
	if !ok || text(spec, "clusterIP") != "" || text(spec, "type") == "ExternalName" {
		return
	}
	c.mu.Lock()
	c.services++
	n := c.services
	c.mu.Unlock()
	ip := fmt.Sprintf("10.%d.%d.%d", 97+n>>16&0x1f, n>>8&0xff, n&0xff)
	spec["clusterIP"], spec["clusterIPs"] = ip, []any{ip}
}

// emptyNamespace deletes the objects of a namespace that was deleted. The real controller (pkg/controller/namespace) does it
// in phases, and waits for finalizers.
func (c *Cluster) emptyNamespace(e change) {
	if e.kind != watch.Deleted || e.key.resource != "namespaces" {
		return
	}
	c.store.mu.Lock()
	var events []change
	for k, o := range maps.Clone(c.store.objects) {
		if k.namespace == e.key.name {
			events = append(events, c.store.put(watch.Deleted, k, runtime.DeepCopyJSON(o)))
		}
	}
	c.store.mu.Unlock()
	c.store.notify(events...)
}
