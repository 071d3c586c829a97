package smoke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

const (
	// DefaultImage is used on both systems. It is Kubernetes' own test image, for Linux and for Windows
	// Server 2019, 2022 and 2025.
	DefaultImage = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
	// DefaultWait is long enough to pull a Windows image.
	DefaultWait = 10 * time.Minute

	// maxScheduling is the longest wait for the scheduler.
	maxScheduling = time.Minute
	// requestLimit bounds the attempts of one request between pods. The programs on the nodes need some
	// seconds to learn of a new Service.
	requestLimit = 30 * time.Second
	// interval and maxInterval are the times between two looks at a pod.
	interval, maxInterval = time.Second, 5 * time.Second
	// removalMargin is the part of a run's limit that remains for the work outside of the legs,
	// such as making and removing namespaces.
	removalMargin = 2 * time.Minute
)

// Kubelets runs commands in containers and reads their logs, through the API server.
type Kubelets interface {
	Exec(ctx context.Context, pod cluster.Pod, container string, limit int, command ...string) (cluster.ExecResult, error)
	PodLog(ctx context.Context, pod cluster.Pod, container string, lines, limit int64) (string, error)
}

// Options select what to test.
type Options struct {
	// Nodes are names of Windows nodes; empty: all.
	Nodes []string
	// Selector selects Windows nodes by their labels; nil: all.
	Selector labels.Selector
	// Image is the image of the Windows pods, and LinuxImage is the image of the server. Empty:
	// DefaultImage. An image must have curl, and its entry point must be an HTTP server with the
	// command netexec, as agnhost is.
	Image, LinuxImage string
	// ImageFlag and LinuxImageFlag are the flags that set the images, for remedies. Empty: the
	// flags of `swdt cluster check`.
	ImageFlag, LinuxImageFlag string
	// Wait bounds the start of each pod, which includes the pull of its image. 0: DefaultWait.
	Wait time.Duration
	// Labels are further labels of the namespace.
	Labels map[string]string
	// Keep leaves the namespace in the cluster, so that the user can look at the pods.
	Keep bool
	// Reporter returns the reporter of the node with this name; for "", it returns the reporter of
	// the run. nil: nothing is reported.
	Reporter func(node string) ui.Reporter
	// Kubelets gives access to the containers; nil: swdt uses the API server of the tested cluster.
	Kubelets Kubelets
}

// completed returns the options with their defaults.
func (o Options) completed(c *cluster.Cluster) Options {
	o.Image = cmp.Or(o.Image, DefaultImage)
	o.LinuxImage = cmp.Or(o.LinuxImage, DefaultImage)
	o.ImageFlag = cmp.Or(o.ImageFlag, "--image")
	o.LinuxImageFlag = cmp.Or(o.LinuxImageFlag, "--linux-image")
	o.Wait = cmp.Or(o.Wait, DefaultWait)
	if o.Reporter == nil {
		o.Reporter = func(string) ui.Reporter { return ui.Discard{} }
	}
	if o.Kubelets == nil {
		o.Kubelets = c
	}
	return o
}

// scheduleLimit bounds the wait for the scheduler.
func (o Options) scheduleLimit() time.Duration { return min(maxScheduling, o.Wait) }

// limit returns the longest time that a run can take.
func (o Options) limit() time.Duration {
	requests := time.Duration(len(legNames())) * requestLimit
	return 2*(o.scheduleLimit()+o.Wait) + requests + removalMargin
}

// run is one run.
type run struct {
	Options
	c         *cluster.Cluster
	namespace string
	nodes     nodes
	service   string // the address of the server's Service
	server    *server
}

// server is the pod on a Linux node.
type server struct {
	pod   cluster.Pod
	ready chan struct{} // closed when the fields below are set
	state ServerReport
	err   error
}

// Run tests the cluster. Unless o.Keep is set, it removes everything that it has made, even if it
// fails or ctx ends. The report has the legs of all nodes. The error is a *FailedError if a leg did
// not pass. Any other error means that the test could not be made or was interrupted, or that the
// removal failed.
func Run(ctx context.Context, c *cluster.Cluster, o Options) (report Report, err error) {
	begin := time.Now()
	o = o.completed(c)
	r := o.Reporter("")
	defer ui.Done(r)
	report = newReport(c, o)
	found, err := find(ctx, c, o)
	if err != nil {
		return report, err
	}
	w := &run{Options: o, c: c, nodes: found}
	if !o.Keep {
		defer interrupt.AllowTime(ctx, makeLimit+removeLimit+time.Second)()
	}
	all := namespaces{c}
	made, err := all.make(ctx, o)
	if err != nil {
		return report, err
	}
	w.namespace, report.Namespace, report.Kept = made.Name, made.Name, o.Keep
	if !o.Keep {
		defer func() {
			if failed := all.remove(ctx, made); failed != nil {
				err = errors.Join(err, failed)
			}
		}()
	}
	report.Leftovers = all.removeLeftovers(ctx, made.CreationTimestamp.Time, r)
	bounded, cancel := context.WithTimeout(ctx, o.limit()-removalMargin)
	defer cancel()
	if err := w.test(bounded, &report); err != nil {
		return report, err
	}
	report = report.ended(time.Since(begin))
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	return report, report.failure()
}

// test makes the objects, and runs the legs of all nodes side by side.
func (w *run) test(ctx context.Context, report *Report) error {
	if err := w.makeServer(ctx); err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { w.startServer(ctx) })
	report.Nodes = make([]NodeReport, len(w.nodes.windows))
	for i, n := range w.nodes.windows {
		running.Go(func() {
			r := w.Reporter(n.Name)
			defer ui.Done(r)
			report.Nodes[i] = w.testNode(ctx, n, podName(i), r)
		})
	}
	running.Wait()
	report.Server = w.server.state
	return nil
}

// podName returns the name of the pod for the node of this index. The node's name may be too long for
// a pod's name.
func podName(index int) string { return fmt.Sprintf("windows-%d", index+1) }

// makeServer makes the objects that all nodes share.
func (w *run) makeServer(ctx context.Context) error {
	client, in := w.c.Clientset().CoreV1(), w.namespace
	_, err := client.ServiceAccounts(in).Create(ctx, serviceAccount(in), metav1.CreateOptions{})
	if err != nil {
		return w.refused("make ServiceAccount "+account, "serviceaccounts", err)
	}
	made, err := client.Services(in).Create(ctx, service(in), metav1.CreateOptions{})
	if err != nil {
		return w.refused("make Service "+serverName, "services", err)
	}
	w.service = made.Spec.ClusterIP
	w.server = &server{pod: cluster.Pod{Namespace: in, Name: serverName}, ready: make(chan struct{})}
	w.server.state = ServerReport{Pod: serverName, Result: NotRun, Message: w.nodes.noLinux}
	if len(w.nodes.linux) == 0 {
		return nil
	}
	_, err = client.Pods(in).Create(ctx, linuxPod(in, w.LinuxImage), metav1.CreateOptions{})
	if err != nil {
		return w.refused("make pod "+serverName, "pods", err)
	}
	return nil
}

func (w *run) refused(doing, resource string, err error) error {
	return w.c.Failure(doing+" in namespace "+w.namespace,
		cluster.Permission{Verb: "create", Resource: resource, Namespace: w.namespace}, err)
}

// startServer waits until the server runs or has failed, and then lets the callers of server.await
// continue.
func (w *run) startServer(ctx context.Context) {
	s := w.server
	defer close(s.ready)
	if len(w.nodes.linux) == 0 {
		s.err = errors.New(w.nodes.noLinux)
		return
	}
	begin, r := time.Now(), w.Reporter(serverName)
	defer ui.Done(r)
	pod, err := w.start(ctx, s.pod, r)
	s.state.Seconds = time.Since(begin).Seconds()
	if err != nil {
		s.state.Result, s.state.Message = Failed, shortened(err.Error(), maxMessage)
		s.err = fmt.Errorf("the server on Linux does not run: %w", err)
		r.Warn("the server on Linux does not run: %s", s.state.Message)
		return
	}
	s.state.Result, s.state.Message = Passed, ""
	s.state.Node, s.state.Address = pod.Spec.NodeName, pod.Status.PodIP
}

// start waits until a pod is scheduled and runs.
func (w *run) start(ctx context.Context, pod cluster.Pod, r ui.Reporter) (*corev1.Pod, error) {
	if _, err := w.awaitPod(ctx, pod, "scheduled", w.scheduleLimit(), isScheduled, r); err != nil {
		return nil, err
	}
	return w.awaitPod(ctx, pod, "started", w.Wait, (&starting{flag: w.LinuxImageFlag}).look, r)
}

// await waits for the server, and returns its address.
func (s *server) await(ctx context.Context) (string, error) {
	select {
	case <-s.ready:
		return s.state.Address, s.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
