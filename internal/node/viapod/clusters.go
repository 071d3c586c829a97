package viapod

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/carrier"
)

// Clusters are the clusters through which one command reaches its nodes. The ways of a command share
// them, so that swdt opens each cluster once, and checks each namespace once, however many nodes there are.
type Clusters struct {
	mu         sync.Mutex
	open       map[cluster.Options]*cluster.Cluster
	namespaces map[namespaceKey]*namespace
	nodes      map[nodeKey]seenNode
}

// NewClusters returns no clusters yet.
func NewClusters() *Clusters {
	return &Clusters{open: map[cluster.Options]*cluster.Cluster{}, namespaces: map[namespaceKey]*namespace{},
		nodes: map[nodeKey]seenNode{}}
}

// Open returns the cluster of these options, the same one each time. It contacts nothing.
//
// The requests are not limited to a number each second: the number of nodes that a command works on at a
// time bounds them.
func (c *Clusters) Open(o cluster.Options) (*cluster.Cluster, error) {
	o.Unlimited = true
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.open[o]; ok {
		return known, nil
	}
	opened, err := cluster.Open(o)
	if err == nil {
		c.open[o] = opened
	}
	var unusable *cluster.ConfigError
	if errors.As(err, &unusable) {
		unusable.Remedy = "name one with --kubeconfig or KUBECONFIG, a context with --context, or both in " +
			"spec.credentials.kubernetes"
	}
	return opened, err
}

// Way implements node.Clusters.
func (c *Clusters) Way(doc config.Document, o node.Options) (carrier.Way, error) {
	k := doc.Node.Spec.Credentials.Kubernetes
	in, err := c.Open(cluster.Options{Kubeconfig: doc.Resolve(k.Kubeconfig), Context: k.Context})
	if err != nil {
		return nil, err
	}
	return New(in, Options{
		Node: cmp.Or(k.Node, node.LikelyObjectName(doc.Node)), Namespace: k.Namespace, Image: k.Image,
		PullLimit: o.PullLimit, Keep: o.KeepPod, Shared: o.SharedNamespace, Clusters: c, Reporter: o.Reporter,
	}), nil
}

// nodeKey is a Node of an open cluster.
type nodeKey struct {
	cluster *cluster.Cluster
	name    string
}

// seenNode is a Node as the API server has last reported it.
type seenNode struct {
	node *corev1.Node
	at   time.Time
}

// seenLimit is how long a listed Node need not be read again.
const seenLimit = 30 * time.Second

// List returns the Nodes that a selector matches, whatever their system. Ways that connect soon do not
// read these Nodes again.
func (c *Clusters) List(ctx context.Context, in *cluster.Cluster, selector labels.Selector) ([]*corev1.Node, error) {
	list, err := in.NodeObjects(ctx, selector)
	if err != nil {
		return nil, asDenied(err, "")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range list {
		c.nodes[nodeKey{in, n.Name}] = seenNode{n, time.Now()}
	}
	return list, nil
}

// seen returns a Node that List has returned just now; nil: it must be read.
func (c *Clusters) seen(in *cluster.Cluster, name string) *corev1.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.nodes[nodeKey{in, name}]; time.Since(known.at) < seenLimit {
		return known.node
	}
	return nil
}

// namespaceKey is a namespace of an open cluster, as one way uses it.
type namespaceKey struct {
	cluster *cluster.Cluster
	name    string
	shared  bool
	records string
}

// namespace is the knowledge that the ways of a command have of a namespace.
type namespace struct {
	checking singleflight.Group
	checked  atomic.Bool
	made     atomic.Bool // by this command
}

func (c *Clusters) namespace(key namespaceKey) *namespace {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.namespaces[key] == nil {
		c.namespaces[key] = &namespace{}
	}
	return c.namespaces[key]
}

// once runs check until it has succeeded once. Callers that come meanwhile wait for the same check, and get
// its error. If the caller that began the check was cancelled, another one begins it again.
func (n *namespace) once(ctx context.Context, check func(context.Context) error) error {
	for !n.checked.Load() {
		done := n.checking.DoChan("", func() (any, error) {
			if n.checked.Load() {
				return nil, nil
			}
			err := check(ctx)
			n.checked.Store(err == nil)
			return nil, err
		})
		select {
		case result := <-done:
			if result.Err != nil && (!errors.Is(result.Err, context.Canceled) || ctx.Err() != nil) {
				return result.Err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
