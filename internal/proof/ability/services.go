package ability

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// backendCount is the number of pods behind the Services.
	backendCount = 2
	// spread is the number of connections in which a Service without affinity reaches all its pods: that one of
	// two is missed by chance happens once in 8 million runs. sticky is the number of those with affinity.
	spread, sticky = 24, 12
	// reachLimit bounds the time until the programs on the nodes know a new Service.
	reachLimit = 30 * time.Second
	// interval and maxInterval are the times between two attempts.
	interval, maxInterval = time.Second, 5 * time.Second
)

// backends are two pods on a Linux node, with the Services in front of them.
type backends struct {
	ready         chan struct{} // is closed when the fields below are set
	err           error         // an *UnavailableError or a *notTriedError; nil if all of them run
	pods          []*guest
	plain, sticky string // addresses of the Services without and with session affinity
	nodePort      int32
}

// makeBackends makes the pods and the Services.
func (w *run) makeBackends(ctx context.Context, b *backends) {
	defer close(b.ready)
	i := slices.IndexFunc(w.nodes, func(n cluster.Node) bool {
		return systemOf(n) == linux && smoke.CannotRun(n) == ""
	})
	if i < 0 {
		b.err = &UnavailableError{"no Linux node can run the pods behind the Services"}
		return
	}
	r := w.Reporter("servers")
	defer ui.Done(r)
	b.pods = make([]*guest, backendCount)
	var running sync.WaitGroup
	for at := range b.pods {
		pod := w.newPod(fmt.Sprintf("%s-%d", backend, at+1), w.nodes[i], server()...)
		pod.Labels[roleLabel] = backend
		running.Go(func() { b.pods[at] = w.start(ctx, pod, w.nodes[i], r) })
	}
	running.Wait()
	for _, g := range b.pods {
		if g.err != nil {
			b.err = tried(g.err)
			return
		}
	}
	b.err = tried(w.makeServices(ctx, b))
}

func (w *run) makeServices(ctx context.Context, b *backends) error {
	create := func(name string, change func(*corev1.ServiceSpec)) (*corev1.Service, error) {
		made, err := w.c.Clientset().CoreV1().Services(w.namespace).Create(ctx, w.newService(name, change),
			metav1.CreateOptions{})
		return made, w.refused("make Service "+name, "services", err)
	}
	plain, err := create("plain", nil)
	if err != nil {
		return err
	}
	kept, err := create("sticky", func(s *corev1.ServiceSpec) { s.SessionAffinity = corev1.ServiceAffinityClientIP })
	if err != nil {
		return err
	}
	outside, err := create("outside", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort })
	if err != nil {
		return err
	}
	b.plain, b.sticky, b.nodePort = plain.Spec.ClusterIP, kept.Spec.ClusterIP, outside.Spec.Ports[0].NodePort
	return nil
}

// client returns the pod that sends requests to Services, and the pods behind them.
func (t *nodeTest) client(ctx context.Context) (*guest, *backends, error) {
	b, err := t.servers(ctx)
	if err != nil {
		return nil, nil, err
	}
	g, err := t.freePod(ctx)
	return g, b, err
}

// servers waits for the pods behind the Services.
func (t *nodeTest) servers(ctx context.Context) (*backends, error) {
	select {
	case <-t.backends.ready:
		return t.backends, t.backends.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// sessionAffinity proves that a Service with the affinity ClientIP leads all connections of a pod to the same
// pod. Without affinity, they must reach both, otherwise this would show nothing.
func (t *nodeTest) sessionAffinity(ctx context.Context) error {
	g, b, err := t.client(ctx)
	if err != nil {
		return err
	}
	without, err := t.reached(ctx, g, b, b.plain, spread)
	if err != nil {
		return err
	}
	if len(without) < backendCount {
		return fmt.Errorf("%d connections to a Service without session affinity all reached pod %s; does kube-proxy "+
			"know both pods (`swdt hns loadbalancers`)?", spread, without[0])
	}
	with, err := t.reached(ctx, g, b, b.sticky, sticky)
	if err != nil {
		return err
	}
	if len(with) > 1 {
		return fmt.Errorf("%d connections to a Service with the session affinity ClientIP reached the pods %s; "+
			"kube-proxy needs Windows Server 2022 or newer, or version 1809 with its updates, for it", sticky,
			strings.Join(with, " and "))
	}
	return nil
}

// reached returns the names of the pods that connections to a Service reach.
func (t *nodeTest) reached(ctx context.Context, g *guest, b *backends, address string, count int) (names []string,
	err error) {
	url := urlOf(address, servicePort, "/hostname")
	if err := t.await(ctx, g, url); err != nil {
		return nil, err
	}
	for range count {
		name, err := smoke.Fetch(ctx, t.Access, g.pod, g.system, url)
		switch {
		case err != nil:
			return nil, err
		case !slices.ContainsFunc(b.pods, func(g *guest) bool { return g.pod.Name == name }):
			return nil, fmt.Errorf("%s: the answer is not of a pod of the Service: %s", url, name)
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// await waits until a server answers.
func (t *nodeTest) await(ctx context.Context, g *guest, url string) error {
	return wait.Condition{
		Name: "an answer of " + url, Interval: interval, MaxInterval: maxInterval, Limit: reachLimit,
		Look: func(ctx context.Context) error {
			_, err := smoke.Fetch(ctx, t.Access, g.pod, g.system, url)
			return err
		},
	}.Wait(ctx)
}

// sourceAddress proves that a pod behind a Service sees the address of the pod that connects to it. On Windows
// this needs kube-proxy with DSR (direct server return): without it, the node's load balancer puts an
// address of the node in the place of the pod's, so that policies and logs do not see the pod.
func (t *nodeTest) sourceAddress(ctx context.Context) error {
	g, b, err := t.client(ctx)
	if err != nil {
		return err
	}
	url := urlOf(b.plain, servicePort, "/clientip")
	if err := t.await(ctx, g, url); err != nil {
		return err
	}
	text, err := smoke.Fetch(ctx, t.Access, g.pod, g.system, url)
	if err != nil {
		return err
	}
	seen, err := netip.ParseAddrPort(text)
	own := g.live.Status.PodIP
	switch {
	case err != nil:
		return fmt.Errorf("%s: the answer is no address: %s", url, text)
	case seen.Addr().Unmap().String() == own:
		return nil
	}
	return fmt.Errorf("a pod with the address %s connects to a Service, and the pod behind it sees %s%s; does "+
		"kube-proxy run with --enable-dsr (in its configuration winkernel.enableDSR)?", own, seen.Addr().Unmap(),
		t.ownerOf(seen.Addr().Unmap().String()))
}

// ownerOf returns the node that has an address, in words; "" if none has it.
func (t *nodeTest) ownerOf(address string) string {
	for _, n := range t.nodes {
		for _, a := range n.Addresses {
			if a.Address == address {
				return ", the address of node " + n.Name
			}
		}
	}
	return ""
}

// nodePort proves that the node passes connections to a NodePort of its address on to the pods of the Service. The
// connections come from a pod on a Linux node.
func (t *nodeTest) nodePort(ctx context.Context) error {
	b, err := t.servers(ctx)
	if err != nil {
		return err
	}
	address, err := t.address()
	if err != nil {
		return err
	}
	_, err = t.reached(ctx, b.pods[0], b, net.JoinHostPort(address, strconv.Itoa(int(b.nodePort))), 1)
	return err
}

// address returns the node's address in the network of the cluster.
func (t *nodeTest) address() (string, error) {
	for _, a := range t.node.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address, nil
		}
	}
	return "", tried(errors.New("the Node object has no address of the type InternalIP"))
}

// urlOf returns a URL of a server. host may have a port of its own.
func urlOf(host string, port int, path string) string {
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(host, strconv.Itoa(port))
	}
	return "http://" + host + path
}
