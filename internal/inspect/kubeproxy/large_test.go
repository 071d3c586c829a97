package kubeproxy_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
)

// large returns a sound node with many Services, of which every tenth has a node port.
func large(services, endpoints int) *world {
	w := newWorld()
	number := 0
	for i := range services {
		var ends []end
		var ids []string
		for range endpoints*(i+1)/services - endpoints*i/services {
			ip, node := fmt.Sprintf("10.%d.%d.%d", 100+number/62500, number/250%250, number%250+1), there
			if number%40 == 0 {
				node = here
			}
			number++
			ends = append(ends, end{ip: ip, node: node})
			if node == here {
				ids = append(ids, w.local(ip))
			} else {
				ids = append(ids, w.remote(ip))
			}
		}
		name, address := fmt.Sprintf("many-%d", i), fmt.Sprintf("10.96.%d.%d", i/250, i%250+1)
		if i%10 != 0 {
			w.serve(name, address, ends)
		} else {
			w.serve(name, address, ends, nodePort(int32(30000+i)))
			w.balance("", 30000+i, 0, viaNodePort, ids...)
		}
		w.balance(address, 80, dsr, 0, ids...)
	}
	return w
}

// plant plants a fault at a Service, by its number, and returns what should be found.
func (w *world) plant(i, fault int) brief {
	service, address := fmt.Sprintf("shop/many-%d", i), fmt.Sprintf("10.96.%d.%d", i/250, i%250+1)
	at := address + ":80/tcp"
	b := w.balancer(address, 80)
	ids := b["HostComputeEndpoints"].([]string)
	switch fault % 8 {
	case 0:
		delete(w.balancers, b["ID"].(string))
		return brief{kubeproxy.Missing, service, at}
	case 1:
		stale := fmt.Sprintf("10.240.0.%d", fault+1)
		w.remote(stale)
		return brief{kubeproxy.StaleRemote, "", stale}
	case 2:
		w.balance(address, 80, dsr, 0, ids[0], "GONE")
		return brief{kubeproxy.Doubled, service, at}
	case 3:
		b["HostComputeEndpoints"] = ids[1:]
		return brief{kubeproxy.Backends, service, at}
	case 4:
		stranger := fmt.Sprintf("10.241.0.%d", fault+1)
		w.pod("stranger-"+stranger, there, stranger)
		b["HostComputeEndpoints"] = append(append([]string{}, ids...), w.remote(stranger))
		return brief{kubeproxy.Backends, service, at}
	case 5:
		delete(b, "Flags")
		return brief{kubeproxy.Flags, service, at}
	case 6:
		other := fmt.Sprintf("10.97.0.%d", fault+1)
		w.balance(other, 80, dsr, 0, ids...)
		return brief{kubeproxy.Stale, "", other + ":80/tcp"}
	}
	b["PortMappings"].([]any)[0].(object)["InternalPort"] = 1
	return brief{kubeproxy.Target, service, at}
}

// TestFaultsAmongManyServices plants 40 faults among 2,000 Services with 5,000 endpoints: all are found, and none is invented.
func TestFaultsAmongManyServices(t *testing.T) {
	w := large(2000, 5000)
	if r := w.compare(t); len(r.Findings) > 0 || r.Wanted != 2200 || r.Held != 2200 || r.Endpoints != 5000 {
		t.Fatalf("a sound node: %d load balancers wanted, %d held, %d endpoints: %+v", r.Wanted, r.Held, r.Endpoints, r.Findings)
	}
	random := rand.New(rand.NewPCG(43, 2))
	want := []brief{}
	for fault, i := range random.Perm(2000)[:40] {
		want = append(want, w.plant(i, fault))
	}
	got := briefs(w.compare(t))
	sortBriefs(want)
	sortBriefs(got)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(brief{})); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkCompare compares nodes of growing size. ns/object shows that the time is linear.
func BenchmarkCompare(b *testing.B) {
	for _, services := range []int{500, 2000, 8000} {
		w := large(services, services*5/2)
		state := w.state(b)
		b.Run(fmt.Sprintf("%dServices", services), func(b *testing.B) {
			for b.Loop() {
				kubeproxy.NewCluster(w.Objects).Compare(w.settings, state)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(services*7/2), "ns/object")
		})
	}
}

// BenchmarkListing reads the documents of the node of BenchmarkCompare, as each full listing of HNS does.
func BenchmarkListing(b *testing.B) {
	w := large(2000, 5000)
	var state hns.State
	for b.Loop() {
		state = w.state(b)
	}
	_ = state
}
