package cluster

import (
	"context"
	"io"
)

// KubeletGoroutines returns the goroutines of a node's kubelet as text, which the caller closes. kubelet serves them if
// enableDebuggingHandlers and enableProfilingHandler are on, as by default. The error is a *NoNodeError if the
// cluster has no such node, and a *ForbiddenError if the kubeconfig may not get nodes/proxy.
func (c *Cluster) KubeletGoroutines(ctx context.Context, node string) (io.ReadCloser, error) {
	body, err := c.client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").
		Suffix("debug/pprof/goroutine").Param("debug", "2").Stream(ctx)
	switch {
	case noNode(err):
		return nil, &NoNodeError{Node: node}
	case err != nil:
		return nil, c.fail("read kubelet's goroutines through the API server",
			Permission{Verb: "get", Resource: "nodes/proxy", Name: node}, err)
	}
	return body, nil
}
