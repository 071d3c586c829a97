package scale

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
)

// sent is a part of the metrics in the form in which kube-proxy 1.36 on Windows sends them.
const sent = `# HELP kubeproxy_network_programming_duration_seconds [ALPHA] In Cluster Network Programming Latency
# TYPE kubeproxy_network_programming_duration_seconds histogram
# TYPE kubeproxy_sync_proxy_rules_duration_seconds histogram
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.001"} 1
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="2.048"} 4
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="+Inf"} 5
kubeproxy_sync_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 12.5
kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 5
kubeproxy_sync_proxy_rules_endpoint_changes_pending 0
kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} 1.7955e+09
kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv6"} 0
kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.7955000025e+09
kubeproxy_sync_proxy_rules_service_changes_pending 0
kubeproxy_sync_proxy_rules_winkernel_lb_create_failures_total{error="a, b",ip_family="IPv4",lb_type="clusterip"} 3
process_cpu_seconds_total 4
`

func parsed(t *testing.T, replace ...string) kubeproxy.Metrics {
	t.Helper()
	m, ok := kubeproxy.ParseMetrics([]byte(strings.NewReplacer(replace...).Replace(sent)))
	if !ok {
		t.Fatal("no metrics of kube-proxy were found")
	}
	return m
}

func TestMetricsOfKubeProxy(t *testing.T) {
	m := parsed(t)
	at, queued, ok := m.Settled()
	if want := time.Unix(1795500002, 5e8); !ok || !at.Equal(want) || queued != 1.7955e9 {
		t.Errorf("settled at %v, queued at %v: %v", at, queued, ok)
	}
	if diff := cmp.Diff(map[string]float64{"create clusterip": 3}, m.Failures); diff != "" {
		t.Errorf("the failures (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(Syncs{Count: 5, MeanSeconds: 2.5}, syncsSince(m, kubeproxy.Metrics{})); diff != "" {
		t.Errorf("all syncs (-want +got)\n%s", diff)
	}
	before := parsed(t, `"+Inf"} 5`, `"+Inf"} 3`, `"2.048"} 4`, `"2.048"} 2`, "} 12.5", "} 10.5",
		`count{ip_family="IPv4"} 5`,
		`count{ip_family="IPv4"} 3`)
	if diff := cmp.Diff(Syncs{Count: 2, MeanSeconds: 1, MaxSeconds: 2.048}, syncsSince(m, before)); diff != "" {
		t.Errorf("the last two syncs (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(Syncs{Count: 3, MeanSeconds: 3.5}, syncsSince(before, m)); diff != "" {
		t.Errorf("the syncs since a restart (-want +got)\n%s", diff)
	}
}

// A sync that began before the last change was queued has not programmed it, although kube-proxy's
// counters of pending changes are 0 as soon as the next sync begins.
func TestASyncThatBeganBeforeTheLastChange(t *testing.T) {
	before := parsed(t, `count{ip_family="IPv4"} 5`, `count{ip_family="IPv4"} 4`, "} 12.5", "} 2.5")
	during := parsed(t)
	during.Follow(before) // the last sync took 10 s, and the change came 2.5 s before its end
	if at, _, ok := during.Settled(); ok {
		t.Errorf("settled at %v", at)
	}
	after := parsed(t, `count{ip_family="IPv4"} 5`, `count{ip_family="IPv4"} 6`, "} 12.5", "} 14.5")
	after.Follow(during) // 2 s
	if _, _, ok := after.Settled(); !ok {
		t.Error("not settled after the next sync")
	}
	later := parsed(t, `count{ip_family="IPv4"} 5`, `count{ip_family="IPv4"} 6`, "} 12.5", "} 14.5")
	later.Follow(after)
	if _, _, ok := later.Settled(); !ok {
		t.Error("not settled when nothing has changed")
	}
}

func TestUnsettledMetrics(t *testing.T) {
	for name, replace := range map[string][]string{
		"a change is pending":      {`service_changes_pending 0`, `service_changes_pending 2`},
		"queued after the sync":    {"} 1.7955e+09", "} 1.7956e+09"},
		"no sync yet":              {`kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.7955000025e+09`, ""},
		"IPv6 is behind":           {`{ip_family="IPv6"} 0`, `{ip_family="IPv6"} 5`},
		"nothing was ever queued":  {"} 1.7955e+09", "} 0"},
		"a time beyond all clocks": {"} 1.7955000025e+09", "} 1e300"},
	} {
		if at, _, ok := parsed(t, replace...).Settled(); ok {
			t.Errorf("%s: settled at %v", name, at)
		}
	}
	if _, ok := kubeproxy.ParseMetrics([]byte("go_threads 12\n")); ok {
		t.Error("metrics of another program count as those of kube-proxy")
	}
	if _, ok := kubeproxy.ParseMetrics([]byte(strings.Replace(sent, "} 1.7955000025e+09", "} x", 1))); ok {
		t.Error("a damaged text, in which a pending change may be missing, counts as metrics")
	}
}

// A node may send any text.
func FuzzMetrics(f *testing.F) {
	f.Add([]byte(sent))
	f.Add([]byte(`kubeproxy_sync_proxy_rules_duration_seconds_bucket{le="1",ip_family="` + "\n"))
	f.Add([]byte("kubeproxy_sync_proxy_rules_last_timestamp_seconds NaN"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, _ := kubeproxy.ParseMetrics(text)
		if len(m.Families) > kubeproxy.MaxMetricFamilies || len(m.Failures) > kubeproxy.MaxMetricFamilies {
			t.Errorf("%d families and %d failures are kept", len(m.Families), len(m.Failures))
		}
		m.Settled()
		s := syncsSince(m, kubeproxy.Metrics{})
		if s.Count < 0 || !(s.MeanSeconds >= 0) || math.IsInf(s.MaxSeconds, 0) {
			t.Errorf("%+v", s)
		}
	})
}

func TestCPUTimeOfProcesses(t *testing.T) {
	process := func(pid uint32, cpu time.Duration) *agentv1.Process {
		return &agentv1.Process{Pid: pid, Cpu: durationpb.New(cpu), MemoryBytes: 10, Handles: 1}
	}
	var c consumer
	c.take([]*agentv1.Process{process(4, time.Hour)}, 0)
	if cores := c.take([]*agentv1.Process{process(4, time.Hour+time.Second)}, 2*time.Second); cores != 0.5 {
		t.Errorf("%v cores, want 0.5", cores)
	}
	c.take([]*agentv1.Process{process(8, time.Second), process(12, time.Second)}, time.Second) // restarted
	if c.seconds != 3 || c.replaced != 1 || c.memory != 20 || c.handles != 2 {
		t.Errorf("%+v", c)
	}
	c.take([]*agentv1.Process{process(8, time.Millisecond)}, time.Second) // the counter went back
	c.take([]*agentv1.Process{process(8, math.MaxInt64)}, time.Second)
	if want := 3.0 + mostCores; c.seconds != want || c.replaced != 2 {
		t.Errorf("a node that lies: %+v, want %v seconds", c, want)
	}
}

func TestMessagesOfLogLines(t *testing.T) {
	for line, want := range map[string]string{
		`E1123 10:00:00.0 1 proxier.go:487] "Endpoint deletion failed" err="x \"y\"" ip="1.2.3.4"`: "Endpoint deletion failed",
		"E1123 10:00:00.0 1 hns.go:9] Unable to find network":                                      "Unable to find network",
		"anything": "anything",
	} {
		if got := messageOf(line); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	var all []time.Duration
	for n := range 200 {
		all = append(all, time.Duration(200-n)*time.Second)
	}
	if diff := cmp.Diff(Spread{Half: 100, P90: 180, P99: 198, Max: 200}, spread(all)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(Spread{Half: 3, P90: 3, P99: 3, Max: 3}, spread(all[197:198])); diff != "" {
		t.Errorf("one (-want +got)\n%s", diff)
	}
}

func TestAddressesOfALoad(t *testing.T) {
	l := Load{Services: 7, Endpoints: 300, Changes: 3, Range: "10.0.0.0/20"}
	seen := map[string]bool{}
	for n := range l.Services {
		addresses := l.endpoints(n)
		if len(addresses) < 300/7 || len(addresses) > 300/7+1 {
			t.Errorf("Service %d has %d endpoints", n, len(addresses))
		}
		for _, a := range addresses {
			seen[a.String()] = true
		}
	}
	changed := map[int]bool{}
	for n := range l.Changes {
		service, address := l.changed(n)
		changed[service], seen[address.String()] = true, true
	}
	if len(seen) != 303 || len(changed) != 3 || !seen["10.0.1.47"] || seen["10.0.0.0"] {
		t.Errorf("%d addresses, %d changed Services", len(seen), len(changed))
	}
	if l.slices() != 7 {
		t.Errorf("%d slices", l.slices())
	}
	big := Load{Services: 2, Endpoints: 500, Range: DefaultRange}
	slices := newSlices("ns", 0, big.endpoints(0))
	if len(slices) != 3 || big.slices() != 6 || len(slices[2].Endpoints) != 50 || slices[2].Name != "service-00001-3" {
		t.Errorf("%d slices, %d in all", len(slices), big.slices())
	}
}
