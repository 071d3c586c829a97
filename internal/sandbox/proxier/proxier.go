// Package proxier is a stand-in for kube-proxy on a simulated node: it watches Services and
// EndpointSlices, writes a load balancer and endpoints for each Service into the simulated Host Network
// Service (HNS), and serves kube-proxy's metrics. Its faults can be chosen.
//
//   - proxier.go: the process and its synchronizations
//   - objects.go: the objects that it reads and writes; metrics.go: its metrics
//
// It does what Windows' proxier does seen from outside: changes wait for the next synchronization, all are
// programmed one after the other, and a Service without endpoints gets no load balancer. It knows cluster IPs
// and node ports of IPv4, and nothing else.
package proxier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// address is where the metrics are served, as kube-proxy does by default.
	address = "127.0.0.1:10249"
	// defaultMinSync is the shortest time between two synchronizations, as kube-proxy's default.
	defaultMinSync = time.Second
)

// Fault selects the faults of the proxier for one Service.
type Fault struct {
	Never bool          // it is never programmed
	After time.Duration // it is programmed this long after it was first seen
	Stays bool          // its load balancer stays when the Service is removed
}

// Options are the settings of a proxier.
type Options struct {
	Machine *simulated.Machine
	Client  kubernetes.Interface
	// MinSync is the shortest time between two synchronizations. 0: one second.
	MinSync time.Duration
	// Write is how long each write to HNS takes.
	Write time.Duration
	// Fault returns the faults for a Service, by its name; nil: there are none.
	Fault func(service string) Fault
}

// proxier is a running stand-in.
type proxier struct {
	Options
	services, slices cache.Store
	dirty            chan struct{} // has an element if something changed
	metrics          metrics
	seen             map[string]time.Time // when each Service was first seen
	balancers        map[string]balancer  // by the Service's name
	endpoints        map[string]bool      // by their address
}

// Run runs the proxier until ctx ends. After a restart of the machine it goes on.
func Run(ctx context.Context, o Options) error {
	o.MinSync = cmp.Or(o.MinSync, defaultMinSync)
	if o.Fault == nil {
		o.Fault = func(string) Fault { return Fault{} }
	}
	p := &proxier{Options: o, dirty: make(chan struct{}, 1), seen: map[string]time.Time{},
		balancers: map[string]balancer{}, endpoints: map[string]bool{}}
	ended := p.watch(ctx)
	defer func() { <-ended }()
	for {
		if err := o.Machine.AwaitUp(ctx); err != nil {
			return nil //nolint:nilerr // ctx has ended
		}
		process := o.Machine.Spawn("kube-proxy.exe")
		if err := process.HandleHTTP(address, p.pages()); err != nil &&
			!errors.Is(err, simulated.ErrKilled) {
			return err
		}
		stop := context.AfterFunc(ctx, process.Kill)
		err := p.serve(process.Context(), hns{files: process.Platform.Files, compute: process.Platform.Compute})
		stop()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !errors.Is(err, simulated.ErrKilled) {
			return err
		}
	}
}

// network is the HNS network of the simulated node's pods.
const network = "Calico"

// pages serves the metrics, and the configuration in the form of kubernetes v1.36.3 (cmd/kube-proxy/app/server.go, which
// serves KubeProxyConfiguration v1alpha1 at /configz).
func (p *proxier) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", p.metrics.serve)
	mux.HandleFunc("/configz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"kubeproxy.config.k8s.io":{"kind":"KubeProxyConfiguration","apiVersion":"kubeproxy.config.k8s.io/v1alpha1",`+
			`"healthzBindAddress":"127.0.0.1:10256","winkernel":{"networkName":%q,"sourceVip":"","enableDSR":true,`+
			`"rootHnsEndpointName":"cbr0","forwardHealthCheckVip":false}}}`, network)
	})
	return mux
}

// watch follows the API server until ctx ends. It closes the channel when it has ended.
func (p *proxier) watch(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	source := func(client cache.Getter, resource string) cache.ListerWatcher {
		return cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything())
	}
	services, first := p.informer(source(p.Client.CoreV1().RESTClient(), "services"), &corev1.Service{},
		&p.metrics.pendingServices)
	slices, second := p.informer(source(p.Client.DiscoveryV1().RESTClient(), "endpointslices"),
		&discoveryv1.EndpointSlice{}, &p.metrics.pendingEndpoints)
	p.services, p.slices = services, slices
	go func() {
		defer close(ended)
		both := make(chan struct{})
		go func() {
			defer close(both)
			first.RunWithContext(ctx)
		}()
		second.RunWithContext(ctx)
		<-both
	}()
	return ended
}

func (p *proxier) informer(source cache.ListerWatcher, of runtime.Object, pending *counter) (cache.Store,
	cache.Controller) {
	change := func() {
		pending.add(1)
		p.metrics.queue()
		select {
		case p.dirty <- struct{}{}:
		default:
		}
	}
	return cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: source, ObjectType: of,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { change() }, UpdateFunc: func(any, any) { change() }, DeleteFunc: func(any) { change() }}})
}

// serve synchronizes whenever something changed, until ctx ends.
func (p *proxier) serve(ctx context.Context, h hns) error {
	for {
		select {
		case <-p.dirty:
		case <-ctx.Done():
			return nil
		}
		begin := time.Now()
		again, err := p.sync(ctx, h)
		if err != nil {
			return err
		}
		p.metrics.synced(time.Since(begin))
		if again {
			select {
			case p.dirty <- struct{}{}:
			default:
			}
		}
		if wait.For(ctx, p.MinSync) != nil {
			return nil
		}
	}
}

// sync makes HNS have what the API server has. It reports whether a slow Service has to wait for another
// synchronization.
func (p *proxier) sync(ctx context.Context, h hns) (again bool, err error) {
	p.metrics.pendingServices.clear()
	p.metrics.pendingEndpoints.clear()
	wanted := wantedBalancers(p.services.List(), p.slices.List())
	if err := h.findNetwork(ctx, network); err != nil {
		return false, err
	}
	locals, err := h.locals(ctx)
	if err != nil {
		return false, err
	}
	for _, name := range sorted(wanted) {
		b := wanted[name]
		if _, known := p.seen[name]; !known {
			p.seen[name] = time.Now()
		}
		fault := p.Fault(name)
		switch {
		case fault.Never:
			continue
		case time.Since(p.seen[name]) < fault.After:
			again = true
			continue
		}
		if err := p.program(ctx, h, name, b, locals); err != nil {
			return again, err
		}
	}
	return again, p.removeOthers(ctx, h, wanted)
}

// program writes the load balancer of a Service, and the endpoints that HNS does not have.
func (p *proxier) program(ctx context.Context, h hns, name string, b balancer, locals map[string]string) error {
	was := p.balancers[name]
	if slices.Equal(was.endpoints, b.endpoints) && was.vip == b.vip && was.nodePort == b.nodePort && was.sticky == b.sticky &&
		was.optimized == b.optimized {
		return nil
	}
	for _, address := range b.endpoints {
		if p.endpoints[address] || locals[address] != "" {
			continue
		}
		if err := p.pause(ctx, h.putEndpoint(address)); err != nil {
			return err
		}
		p.endpoints[address] = true
	}
	if err := p.pause(ctx, h.putBalancer(b, locals)); err != nil {
		return err
	}
	p.balancers[name] = b
	return nil
}

// removeOthers removes the load balancers of Services that are gone, and then the endpoints that no load
// balancer has.
func (p *proxier) removeOthers(ctx context.Context, h hns, wanted map[string]balancer) error {
	used := map[string]bool{}
	for _, name := range sorted(p.balancers) {
		b := p.balancers[name]
		if _, still := wanted[name]; !still && !p.Fault(name).Stays {
			if err := p.pause(ctx, h.removeBalancer(b)); err != nil {
				return err
			}
			delete(p.balancers, name)
			delete(p.seen, name)
			continue
		}
		for _, address := range b.endpoints {
			used[address] = true
		}
	}
	for _, address := range sorted(p.endpoints) {
		if used[address] {
			continue
		}
		if err := p.pause(ctx, h.removeEndpoint(address)); err != nil {
			return err
		}
		delete(p.endpoints, address)
	}
	return nil
}

// pause waits as long as a write takes, unless it failed.
func (p *proxier) pause(ctx context.Context, err error) error {
	if err != nil || p.Write == 0 {
		return err
	}
	if wait.For(ctx, p.Write) != nil {
		return simulated.ErrKilled
	}
	return nil
}
