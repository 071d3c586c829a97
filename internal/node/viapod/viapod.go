// Package viapod reaches a Windows node through its cluster, without SSH: swdt makes a HostProcess pod
// on the node, whose processes run on the node itself as SYSTEM, and runs the agent in it by exec. The
// stream of the agent goes over the API server and the node's kubelet.
//
//   - viapod.go: the way to one node; clusters.go: what the ways of one command share
//   - connection.go: programs in the pod, with their streams
//   - stage.go: sends the agent
//   - pod.go: the pod; image.go: its image; await.go: waits until it runs; record.go: pods that a killed swdt has left
//   - namespace.go: the namespace, and who else may get into its pods; rbac.go: the rules that swdt needs
//   - errors.go: what the cluster refuses
//
// A user of the cluster who may exec into such a pod, or make pods in its namespace, is SYSTEM on the
// nodes. So swdt refuses a namespace that others may use, see docs/security.md.
package viapod

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

const (
	// DefaultNamespace is the namespace of the pods.
	DefaultNamespace = "swdt-system"
	// DefaultImage is the image of the pods. It has no files: the pod runs programs of the node.
	DefaultImage = "mcr.microsoft.com/oss/kubernetes/windows-host-process-containers-base-image:v1.0.0"
)

// Options are the settings of the way to a node.
type Options struct {
	Node      string // the name of the Node object
	Namespace string // default: DefaultNamespace
	Image     string // default: one that the node has, or DefaultImage
	// Keep leaves the pod when swdt ends, for the next contact, until its deadline.
	Keep bool
	// Shared accepts a namespace in which other users of the cluster may get into pods.
	Shared bool
	// Records is the folder with the records of this user's pods; default: the user's data folder.
	Records string
	// StartLimit bounds the start of the pod, without the time in which its image is pulled; default 3 minutes.
	StartLimit time.Duration
	// PullLimit bounds the time in which its image is pulled; default 20 minutes.
	PullLimit time.Duration
	// Clusters is shared by the ways of a command; nil: this way shares nothing. It has opened the cluster.
	Clusters *Clusters
	Reporter ui.Reporter // nil: nothing is reported
}

func (o Options) complete() Options {
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.Image == "" {
		o.Image = DefaultImage
	}
	if o.StartLimit == 0 {
		o.StartLimit = 3 * time.Minute
	}
	if o.PullLimit == 0 {
		o.PullLimit = 20 * time.Minute
	}
	if o.Clusters == nil {
		o.Clusters = NewClusters()
	}
	if o.Reporter == nil {
		o.Reporter = ui.Discard{}
	}
	return o
}

// Way is the way to one node. It implements carrier.Way.
type Way struct {
	c *cluster.Cluster
	o Options

	namespace *namespace
	named     bool     // the user has named the image
	present   []string // images of trusted registries that the node has

	mu  sync.Mutex
	pod *record // the pod of this way; nil: none
	// endGrace ends the time that Ctrl-C leaves for the pod's removal. It is not nil if pod is not nil.
	endGrace func()
	checked  bool // the node was checked
}

// New returns the way to a node through its cluster. It contacts nothing.
func New(c *cluster.Cluster, o Options) *Way {
	named := o.Image != ""
	o = o.complete()
	return &Way{c: c, o: o, named: named, namespace: o.Clusters.namespace(namespaceKey{c, o.Namespace, o.Shared, o.Records})}
}

// Destination implements carrier.Way.
func (w *Way) Destination() string { return w.o.Node + " through " + w.c.Endpoint() }

// Names implements carrier.Way.
func (w *Way) Names() []string {
	host, _, err := net.SplitHostPort(w.c.Endpoint())
	if err != nil {
		host = w.c.Endpoint()
	}
	return []string{w.o.Node, host}
}

// Connect implements carrier.Way. It uses the pod of an earlier connection if that still runs.
func (w *Way) Connect(ctx context.Context) (carrier.Connection, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pod != nil {
		running, err := w.stillRuns(ctx)
		if err != nil {
			return nil, err
		}
		if running {
			return newConnection(w, w.pod), nil
		}
		w.abandon(ctx)
	}
	if err := w.prepare(ctx); err != nil {
		return nil, err
	}
	if err := w.start(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("connect: %w", ctx.Err())
		}
		return nil, err
	}
	return newConnection(w, w.pod), nil
}

// stillRuns is runs for the pod of this way. Until an API server has read its roles it forbids everything, so a
// refusal counts only if the API server was ready before the request. Only those who were let in before need that.
func (w *Way) stillRuns(ctx context.Context) (bool, error) {
	running, err := w.runs(ctx, w.pod)
	var denied *DeniedError
	if !errors.As(err, &denied) {
		return running, err
	}
	if w.c.Clientset().Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() != nil {
		return false, &StartingError{err}
	}
	return w.runs(ctx, w.pod) // the API server may have become ready after the refusal
}

// prepare checks the node and the namespace, once, and removes the pods that a killed swdt has left.
func (w *Way) prepare(ctx context.Context) error {
	if w.checked {
		return nil
	}
	if err := w.checkNode(ctx); err != nil {
		return err
	}
	err := w.namespace.once(ctx, func(ctx context.Context) error {
		if err := w.checkNamespace(ctx); err != nil {
			return err
		}
		if err := w.checkRemoval(ctx); err != nil {
			return err
		}
		w.tidy(ctx)
		return nil
	})
	w.checked = err == nil
	return err
}

// checkNode returns an error if a HostProcess pod cannot run on the node.
func (w *Way) checkNode(ctx context.Context) error {
	n, err := w.o.Clusters.seen(w.c, w.o.Node), error(nil)
	if n == nil {
		n, err = w.c.Clientset().CoreV1().Nodes().Get(ctx, w.o.Node, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return &RefusedError{&cluster.NoNodeError{Node: w.o.Node}}
	}
	if err != nil {
		return w.fail("read node "+w.o.Node, cluster.Permission{Verb: "get", Resource: "nodes", Name: w.o.Node}, err)
	}
	if system := n.Labels[corev1.LabelOSStable]; system != "windows" {
		return &RefusedError{fmt.Errorf("node %s has %s=%s: name a Windows node", w.o.Node, corev1.LabelOSStable, system)}
	}
	w.present = imagesOn(n)
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown {
			return &KubeletDownError{Node: w.o.Node, Since: c.LastTransitionTime.Time, Message: c.Message}
		}
	}
	return nil
}

// start makes the pod, or takes over a kept one, and waits until it runs.
func (w *Way) start(ctx context.Context) error {
	w.endGrace = interrupt.AllowTime(ctx, answerLimit+leaveLimit)
	defer func() {
		if w.pod == nil {
			w.endGrace()
		}
	}()
	if w.pod = w.kept(ctx); w.pod != nil {
		return nil
	}
	return w.startOne(ctx)
}

// leaveLimit bounds the removal of a pod, which goes on after Ctrl-C.
const leaveLimit = 10 * time.Second

// abandon removes the pod of this way. A failure is a warning, since the next contact tries again.
func (w *Way) abandon(ctx context.Context) {
	if w.pod == nil {
		return
	}
	pod := w.pod
	w.pod = nil
	defer w.endGrace()
	if w.remove(ctx, pod) {
		pod.forget()
	} else {
		pod.release()
	}
}

// remove removes the pod of a record, and reports whether that is done.
func (w *Way) remove(ctx context.Context, r *record) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	err := w.removePod(ctx, r)
	if err != nil {
		w.o.Reporter.Warn("%v; the next contact with a node of this cluster removes it", err)
	}
	return err == nil
}

// Leave implements carrier.Way. It removes the pod, unless Options.Keep is set.
func (w *Way) Leave(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pod != nil && w.o.Keep {
		w.pod.release()
		w.pod = nil
		w.endGrace()
		return
	}
	w.abandon(ctx)
}
