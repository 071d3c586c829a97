package scale_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/proof/scale"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/sandbox/proxier"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
)

// world is a cluster with a simulated node on which a proxier runs.
type world struct {
	*cluster.Cluster
	api    *apiserver.Cluster
	node   *nodetest.Node
	client *kubernetes.Clientset
}

func newWorld(t *testing.T, fault func(service string) proxier.Fault) *world {
	t.Helper()
	api, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	kubeconfig, err := api.Kubeconfig("")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{api: api, node: nodetest.Start(t, "win-1", simulated.Options{Preset: simulated.Minimal})}
	if w.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	config.QPS, config.UserAgent = -1, "swdt" // as package cluster sets it
	w.Cluster = cluster.FromClients(config.Host, must(kubernetes.NewForConfig(config)), nil)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := proxier.Run(ctx, proxier.Options{Machine: w.node.Machine, Client: w.client, MinSync: 20 * time.Millisecond,
			Fault: fault})
		if err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return w
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func options(t *testing.T, w *world) scale.Options {
	t.Helper()
	records, err := leftover.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return scale.Options{
		Load:  scale.Load{Services: 40, Endpoints: 100, Changes: 8, Range: scale.DefaultRange},
		Nodes: []scale.Target{{Name: "win-1", Node: w.node.Node}},
		Wait:  time.Minute, Interval: 20 * time.Millisecond,
		Folder: t.TempDir(), Records: records,
	}
}

// namespaces returns the names of the namespaces of swdt, and the number of their Services.
func (w *world) namespaces(t *testing.T) (names []string, services int) {
	t.Helper()
	all, err := w.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "swdt.dev/run"})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all.Items {
		names = append(names, n.Name)
	}
	found, err := w.client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/managed-by=swdt"})
	if err != nil {
		t.Fatal(err)
	}
	return names, len(found.Items)
}

func TestAllServicesAreProgrammedAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	report, err := scale.Run(t.Context(), w.Cluster, options(t, w))
	if err != nil {
		t.Fatal(err)
	}
	type phase struct {
		Name                 string
		Services, Programmed int
		Settled              bool
	}
	var got []phase
	for _, p := range report.Nodes[0].Phases {
		got = append(got, phase{p.Phase, p.Services, p.Programmed, p.ProxySettled})
		if p.Time.Half > p.Time.P99 || p.Time.P99 > p.Time.Max || p.Time.Max > 10 {
			t.Errorf("%s: %+v", p.Phase, p.Time)
		}
		if p.Syncs.Count == 0 {
			t.Errorf("%s: no sync", p.Phase)
		}
	}
	want := []phase{{scale.Create, 40, 40, true}, {scale.Churn, 8, 8, true}, {scale.Remove, 40, 40, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if report.Result != scale.Programmed {
		t.Errorf("the result is %s: %s", report.Result, report.Error)
	}
	if c := report.Nodes[0].Cost; c.Calls < 6 || c.Bytes == 0 || c.Looks == 0 || c.LookSeconds <= 0 {
		t.Errorf("the cost of watching: %+v", c)
	}
	if names, services := w.namespaces(t); len(names) > 0 || services > 0 {
		t.Errorf("left: %q, %d Services", names, services)
	}
	again, err := scale.LoadReport(report.Folder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report.Nodes[0].Phases, again.Nodes[0].Phases); diff != "" {
		t.Errorf("the results that were read again (-want +got)\n%s", diff)
	}
}

// faults returns the problems of a report by their phase.
func faults(r scale.Report) map[string][]string {
	all := map[string][]string{}
	for _, p := range r.Nodes[0].Phases {
		for _, f := range p.Faults {
			all[p.Phase] = append(all[p.Phase], f.Service+" "+f.Problem)
		}
	}
	return all
}

// The planted faults, and only these, are found.
func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(service string) proxier.Fault {
		return proxier.Fault{Never: service == "service-00007", Stays: service == "service-00013"}
	})
	later := time.Now().Add(time.Minute).UTC()
	w.node.Put(`C:\var\log\kube-proxy\kube-proxy.log`, fmt.Appendf(nil, "E%s 1 a.go:1] \"An old error\"\n"+
		"E%[2]s 1 proxier.go:487] \"Endpoint deletion failed\" ip=\"198.18.0.1\"\n"+
		"I%[2]s 1 proxier.go:1] \"Syncing\"\n"+
		"E%[2]s 1 proxier.go:487] \"Endpoint deletion failed\" ip=\"198.18.0.2\"\n",
		later.Add(-time.Hour).Format("0102 15:04:05.000000"), later.Format("0102 15:04:05.000000")))
	o := options(t, w)
	o.Wait, o.Load.Changes = 10*time.Second, 0
	report, err := scale.Run(t.Context(), w.Cluster, o)
	var failed *scale.FailedError
	if !errors.As(err, &failed) {
		t.Fatal(err)
	}
	want := map[string][]string{scale.Create: {"service-00007 missing"}, scale.Remove: {"service-00013 left"}}
	if diff := cmp.Diff(want, faults(report)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	logged := []scale.Failure{{Source: scale.FromLog, Message: "Endpoint deletion failed", Count: 2}}
	if diff := cmp.Diff(logged, report.Nodes[0].Failures); diff != "" {
		t.Errorf("the errors (-want +got)\n%s", diff)
	}
}

// The slow Service, and no other, is found.
func TestASlowServiceIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(service string) proxier.Fault {
		if service == "service-00011" {
			return proxier.Fault{After: 25 * time.Second}
		}
		return proxier.Fault{}
	})
	o := options(t, w)
	o.Wait, o.Slow, o.Load.Changes = 2*time.Minute, 8*time.Second, 0
	report, err := scale.Run(t.Context(), w.Cluster, o)
	var failed *scale.FailedError
	if !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{scale.Create: {"service-00011 slow"}}, faults(report)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// After Ctrl-C, nothing is left; after kill -9, nothing is left after the next command.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(string) proxier.Fault { return proxier.Fault{Never: true} })
	o := options(t, w)
	o.Wait = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var slices atomic.Int64
	w.api.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		if r.Verb == "create" && r.Resource == "endpointslices" && slices.Add(1) == 30 {
			cancel()
		}
		return apiserver.Verdict{}
	})
	report, err := scale.Run(ctx, w.Cluster, o)
	if !errors.Is(err, context.Canceled) || report.Result != scale.Incomplete {
		t.Errorf("%s: %v", report.Result, err)
	}
	if names, services := w.namespaces(t); len(names) > 0 || services > 0 {
		t.Errorf("left after Ctrl-C: %q, %d Services", names, services)
	}

	killed, err := o.Records.BeginOwn(w.Server())
	if err != nil {
		t.Fatal(err)
	}
	left := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "swdt-scale-left", Labels: killed.Labels()}}
	if _, err := w.client.CoreV1().Namespaces().Create(t.Context(), left, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := killed.Lock().Close(); err != nil { // as the end of its process does
		t.Fatal(err)
	}
	o.Folder, o.Wait, o.Load = t.TempDir(), 100*time.Millisecond,
		scale.Load{Services: 1, Endpoints: 1, Range: scale.DefaultRange}
	report, _ = scale.Run(t.Context(), w.Cluster, o)
	if diff := cmp.Diff([]string{left.Name}, report.Leftovers); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if names, _ := w.namespaces(t); len(names) > 0 {
		t.Errorf("left after the next command: %q", names)
	}
}

func TestLoadsThatAreNotPossible(t *testing.T) {
	good := scale.Load{Services: 10, Endpoints: 20, Changes: 5, Range: scale.DefaultRange}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for flag, change := range map[string]func(*scale.Load){
		"--services 0":      func(l *scale.Load) { l.Services = 0 },
		"--services 99999":  func(l *scale.Load) { l.Services = 99999 },
		"--endpoints 9":     func(l *scale.Load) { l.Endpoints = 9 },
		"--endpoints 99999": func(l *scale.Load) { l.Endpoints = 99999 },
		"--changes 11":      func(l *scale.Load) { l.Changes = 11 },
		"--range x":         func(l *scale.Load) { l.Range = "x" },
		"--range 127.0":     func(l *scale.Load) { l.Range = "127.0.0.0/8" },
		"--range 192.0":     func(l *scale.Load) { l.Range = "192.0.2.0/28" },
	} {
		l := good
		change(&l)
		var wrong *scale.LoadError
		if err := l.Check(); !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
