package scale

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// Writes are the requests by which swdt wrote the objects of a phase.
type Writes struct {
	Objects int     `json:"objects"`
	Seconds float64 `json:"seconds"` // from the first request to the last answer
	// Limit is the number of requests a second to which swdt limited itself; 0: no limit.
	Limit float64 `json:"limit"`
	// Request is the time of a request until the API server's answer. It has no waiting of swdt, but
	// the repetitions by which client-go answers a server that asks for patience.
	Request Spread `json:"request"`
}

// writer writes the objects of a run, some at the same time.
type writer struct {
	c         *cluster.Cluster
	namespace string
	load      Load
	board     *board
	writers   int
	limiter   flowcontrol.RateLimiter // nil: no limit
	limit     float64

	mu      sync.Mutex
	took    []time.Duration
	begin   time.Time
	vips    []netip.Addr                 // by Service
	changed []*discoveryv1.EndpointSlice // the first slice of each Service
}

func newWriter(c *cluster.Cluster, namespace string, o Options, b *board) *writer {
	w := &writer{c: c, namespace: namespace, load: o.Load, board: b, writers: o.Writers, limit: o.Rate,
		vips: make([]netip.Addr, o.Load.Services), changed: make([]*discoveryv1.EndpointSlice, o.Load.Services)}
	if o.Rate > 0 {
		w.limiter = flowcontrol.NewTokenBucketRateLimiter(float32(o.Rate), o.Writers)
	}
	return w
}

// each calls f for the numbers from 0 to count-1, for at most w.writers of them at the same time. It ends
// at the first failure.
func (w *writer) each(ctx context.Context, count int, f func(ctx context.Context, n int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.mu.Lock()
	w.took, w.begin = nil, time.Now()
	w.mu.Unlock()
	numbers := make(chan int)
	var running sync.WaitGroup
	for range w.writers {
		running.Go(func() {
			for n := range numbers {
				if err := f(ctx, n); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for n := 0; n < count && ctx.Err() == nil; n++ {
		select {
		case numbers <- n:
		case <-ctx.Done():
		}
	}
	close(numbers)
	running.Wait()
	return context.Cause(ctx)
}

// request makes one request, within the limit.
func (w *writer) request(ctx context.Context, f func() error) error {
	if w.limiter != nil {
		if err := w.limiter.Wait(ctx); err != nil {
			return context.Cause(ctx)
		}
	}
	begin := time.Now()
	err := f()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took = append(w.took, time.Since(begin))
	return err
}

// report returns the requests since each began.
func (w *writer) report() Writes {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begin.IsZero() {
		return Writes{Limit: w.limit}
	}
	return Writes{Objects: len(w.took), Seconds: time.Since(w.begin).Seconds(), Limit: w.limit, Request: spread(w.took)}
}

// create makes a Service with its EndpointSlices.
func (w *writer) create(ctx context.Context, n int) error {
	service := newService(w.namespace, n)
	err := w.request(ctx, func() (err error) {
		service, err = w.c.Clientset().CoreV1().Services(w.namespace).Create(ctx, service, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return w.refused("make Service "+serviceName(n), "create", "", "services", err)
	}
	addresses := w.load.endpoints(n)
	vip, err := netip.ParseAddr(service.Spec.ClusterIP)
	switch {
	case err != nil:
		return &LoadError{"the API server gave Service " + serviceName(n) + " no cluster IP, so no proxy programs it"}
	case vip.Is4() != addresses[0].Is4():
		return &LoadError{"the cluster's Services have addresses such as " + vip.String() +
			"; name a --range of the same family, such as 2001:db8::/64"}
	}
	slices := newSlices(w.namespace, n, addresses)
	for i, slice := range slices {
		err := w.request(ctx, func() (err error) {
			slices[i], err = w.c.Clientset().DiscoveryV1().EndpointSlices(w.namespace).Create(ctx, slice,
				metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return w.refused("make EndpointSlice "+slice.Name, "create", "discovery.k8s.io", "endpointslices", err)
		}
	}
	w.mu.Lock()
	w.vips[n], w.changed[n] = vip, slices[0]
	w.mu.Unlock()
	w.board.add(entry{name: service.Name, vip: vip, want: addresses, written: time.Now()})
	return nil
}

// change replaces one endpoint of a Service by another.
func (w *writer) change(ctx context.Context, n int) error {
	service, address := w.load.changed(n)
	w.mu.Lock()
	slice, vip := w.changed[service].DeepCopy(), w.vips[service]
	w.mu.Unlock()
	slice.Endpoints[0].Addresses = []string{address.String()}
	slice.ResourceVersion = "" // swdt alone writes this slice
	err := w.request(ctx, func() error {
		_, err := w.c.Clientset().DiscoveryV1().EndpointSlices(w.namespace).Update(ctx, slice, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return w.refused("change EndpointSlice "+slice.Name, "update", "discovery.k8s.io", "endpointslices", err)
	}
	want := append([]netip.Addr{address}, w.load.endpoints(service)[1:]...)
	w.board.add(entry{name: serviceName(service), vip: vip, want: want, written: time.Now()})
	return nil
}

// removed adds all Services to the board that the removal of the namespace removes.
func (w *writer) removed(at time.Time) {
	w.mu.Lock()
	made := slices.Clone(w.vips)
	w.mu.Unlock()
	for n, vip := range made {
		if vip.IsValid() {
			w.board.add(entry{name: serviceName(n), vip: vip, written: at})
		}
	}
}

func (w *writer) refused(doing, verb, group, resource string, err error) error {
	return w.c.Failure(doing+" in namespace "+w.namespace,
		cluster.Permission{Verb: verb, Group: group, Resource: resource, Namespace: w.namespace}, err)
}
