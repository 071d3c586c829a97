package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/wait"
)

// InternalIP returns the node's first internal address; "": it has none.
func (n Node) InternalIP() string { return n.address(corev1.NodeInternalIP) }

// HasInternalIPs reports whether the node's internal addresses are those of a list with commas, in its order, as of
// kubelet's --node-ip.
func (n Node) HasInternalIPs(list string) bool {
	var all []string
	for _, a := range n.Addresses {
		if a.Type == corev1.NodeInternalIP {
			all = append(all, a.Address)
		}
	}
	return strings.Join(all, ",") == list
}

func (n Node) address(kind corev1.NodeAddressType) string {
	for _, a := range n.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return ""
}

// AwaitKubelet waits until the API server gets an answer from the node's kubelet on its port, which `kubectl logs` and
// `exec` need. Any answer of kubelet counts, also a refusal. The error is the last one of the API server's; a
// *ForbiddenError if the kubeconfig may not ask.
func (c *Cluster) AwaitKubelet(ctx context.Context, node string) error {
	var last error
	err := wait.Condition{
		Name: "kubelet of " + node + " to answer the API server", Interval: c.poll,
		Look: func(ctx context.Context) error {
			err := c.askKubelet(ctx, node)
			if err != nil && ctx.Err() == nil {
				last = err
			}
			return wait.StopIf(denied(err), err)
		},
	}.Wait(ctx)
	if err != nil && last != nil {
		return last
	}
	return err
}

func (c *Cluster) askKubelet(ctx context.Context, node string) error {
	// Use Stream, since client-go's Do drops the API server's message from the answer.
	body, err := c.client.CoreV1().RESTClient().Get().
		Resource("nodes").Name(node).SubResource("proxy").Suffix("healthz").Stream(ctx)
	if err == nil {
		return body.Close()
	}
	err = c.fail("ask kubelet through the API server", Permission{Verb: "get", Resource: "nodes/proxy", Name: node}, err)
	// The API server reports with the status "service unavailable" that it does not reach kubelet. It is reached itself.
	var silent *UnreachableError
	if errors.As(err, &silent) {
		return fmt.Errorf("the API server does not reach kubelet: %w", silent.Err)
	}
	return err
}
