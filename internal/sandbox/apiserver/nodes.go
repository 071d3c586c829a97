package apiserver

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	taintNotReady      = "node.kubernetes.io/not-ready"
	taintUnreachable   = "node.kubernetes.io/unreachable"
	taintUnschedulable = "node.kubernetes.io/unschedulable"
	noSchedule         = "NoSchedule"
	leaseResource      = "leases.coordination.k8s.io"
)

// taintNewNode adds the taint that Kubernetes' admission adds to a node when it registers
// (plugin/pkg/admission/nodetaint).
func taintNewNode(o object) {
	setTaint(o, taintNotReady, true)
}

// setTaint adds or removes a taint.
func setTaint(o object, name string, wanted bool) {
	spec, ok := o["spec"].(object)
	if !ok {
		spec = object{}
		o["spec"] = spec
	}
	taints, _ := spec["taints"].([]any)
	i := slices.IndexFunc(taints, func(t any) bool {
		fields, _ := t.(object)
		return fields["key"] == name && fields["effect"] == noSchedule
	})
	switch {
	case wanted && i < 0:
		taints = append(slices.Clone(taints), object{"key": name, "effect": noSchedule})
	case !wanted && i >= 0:
		taints = slices.Delete(slices.Clone(taints), i, i+1)
	}
	if len(taints) == 0 {
		delete(spec, "taints")
		return
	}
	spec["taints"] = taints
}

// ready returns the status of a node's Ready condition; empty if the node has none.
func ready(o object) string {
	if condition := condition(o, "Ready"); condition != nil {
		return text(condition, "status")
	}
	return ""
}

func condition(o object, kind string) object {
	conditions, _ := field(o, "status", "conditions").([]any)
	for _, one := range conditions {
		if fields, ok := one.(object); ok && fields["type"] == kind {
			return fields
		}
	}
	return nil
}

// taintNode keeps a node's taints consistent with its conditions and spec.unschedulable.
func (c *Cluster) taintNode(event change) {
	if event.key.resource != "nodes" || event.kind == "DELETED" {
		return
	}
	_, _ = c.store.update(Resource{Version: "v1", Name: "nodes", Kind: "Node"}, event.key,
		func(o object) (object, error) {
			state := ready(o)
			setTaint(o, taintNotReady, state == "False" || state == "")
			setTaint(o, taintUnreachable, state == "Unknown")
			setTaint(o, taintUnschedulable, field(o, "spec", "unschedulable") == true)
			return o, nil
		})
}

// silentLooks is the number of looks in a row that must find a node's lease too old. If the whole
// process stalls, its kubelets cannot renew leases. After that, they renew them before so many looks.
const silentLooks = 5

// watchNodes is the node lifecycle controller (kubernetes v1.36.3, pkg/controller/nodelifecycle/node_lifecycle_controller.go,
// tryUpdateNodeHealth): if a node stops renewing its lease, watchNodes sets the node's conditions to Unknown. It leaves a node alone that never had a lease: no kubelet
// has reported for it, since a test or a user has planted it.
func (c *Cluster) watchNodes(ctx context.Context) {
	tick := time.NewTicker(max(c.options.NodeGrace/10, 10*time.Millisecond))
	defer tick.Stop()
	var silent map[string]int
	for {
		select {
		case <-tick.C:
			silent = c.lookAtNodes(silent)
		case <-ctx.Done():
			return
		}
	}
}

// lookAtNodes sets the conditions of nodes to Unknown that silentLooks looks in a row have found
// silent. silent has the number of such looks before this one, by node, and is returned with this one.
func (c *Cluster) lookAtNodes(silent map[string]int) map[string]int {
	now := map[string]int{}
	nodes, _ := c.store.list("nodes", "")
	for _, o := range nodes {
		name, state := text(o, "metadata", "name"), ready(o)
		last, hasLease := c.lastSign(o)
		if !hasLease || state == "Unknown" || state == "" || c.now().Sub(last) <= c.options.NodeGrace {
			continue
		}
		if now[name] = silent[name] + 1; now[name] >= silentLooks {
			c.markUnknown(name)
		}
	}
	return now
}

// lastSign returns the time at which a node last renewed its lease or its status, or was created, and
// reports whether it has a lease.
func (c *Cluster) lastSign(o object) (last time.Time, hasLease bool) {
	parse := func(text string) time.Time {
		when, _ := time.Parse(time.RFC3339, text)
		return when
	}
	last = parse(text(condition(o, "Ready"), "lastHeartbeatTime"))
	lease, hasLease := c.store.get(key{leaseResource, "kube-node-lease", text(o, "metadata", "name")})
	if renewed := parse(text(lease, "spec", "renewTime")); renewed.After(last) {
		last = renewed
	}
	created := parse(text(o, "metadata", "creationTimestamp"))
	return slices.MaxFunc([]time.Time{last, created}, func(a, b time.Time) int {
		return cmp.Compare(a.UnixNano(), b.UnixNano())
	}), hasLease
}

func (c *Cluster) markUnknown(name string) {
	c.options.Log.Info("a node has not renewed its lease", "node", name)
	now := timestamp(c.now())
	_, _ = c.store.update(Resource{Version: "v1", Name: "nodes", Kind: "Node"}, key{"nodes", "", name},
		func(o object) (object, error) {
			conditions, _ := field(o, "status", "conditions").([]any)
			for _, kind := range []string{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"} {
				fields := condition(o, kind)
				if fields == nil {
					conditions = append(conditions, object{"type": kind, "status": "Unknown", "lastTransitionTime": now,
						"reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status."})
				} else if fields["status"] != "Unknown" {
					fields["status"], fields["reason"], fields["lastTransitionTime"] = "Unknown", "NodeStatusUnknown", now
					fields["message"] = "Kubelet stopped posting node status."
				}
			}
			if status, ok := o["status"].(object); ok {
				status["conditions"] = conditions
			}
			return o, nil
		})
}

const podNetworkName = "pod-network-windows"

// bindNetwork does the work of the pod network's DaemonSet: it creates a pod for each new Windows
// node. The simulated kubelet runs the pod, which gives the node a network.
func (c *Cluster) bindNetwork(event change) {
	if event.key.resource != "nodes" || event.before != nil ||
		text(event.object, "metadata", "labels", "kubernetes.io/os") != "windows" {
		return
	}
	set, ok := c.store.get(key{"daemonsets.apps", "kube-system", podNetworkName})
	if !ok {
		return
	}
	node := event.key.name
	err := c.plant(object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{
			"name": podNetworkName + "-" + node, "namespace": "kube-system",
			"labels": object{"simulated.swdt.dev/installs": "10-simulated.conflist"},
			"ownerReferences": []any{
				object{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": podNetworkName,
					"uid": text(set, "metadata", "uid"), "controller": true},
				object{"apiVersion": "v1", "kind": "Node", "name": node, "uid": text(event.object, "metadata", "uid")},
			},
		},
		"spec": object{"nodeName": node, "hostNetwork": true}, "status": object{"phase": "Pending"},
	})
	if err != nil {
		c.options.Log.Error("give a node its pod network", "node", node, "err", err)
	}
}
