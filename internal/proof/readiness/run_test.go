package readiness_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/proof/ability"
	"github.com/swdt-dev/swdt/internal/proof/readiness"
)

// node returns a node that is Ready.
func node(name, system string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: system}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.NodeInfo.KernelVersion = "10.0.20348.2849"
	n.Status.NodeInfo.ContainerRuntimeVersion = "containerd://1.7.12"
	for _, c := range change {
		c(n)
	}
	return n
}

func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "only", Effect: corev1.TaintEffectNoSchedule}}
}

// clusterOf returns a cluster in memory with these objects.
func clusterOf(objects ...runtime.Object) *cluster.Cluster {
	return cluster.FromClients("https://api", fake.NewClientset(objects...), nil)
}

// suite plays e2e.test.
type suite struct {
	specs   []readiness.Spec
	results map[string]readiness.SpecResult // of specs that do not pass, by name
	lost    []string                        // specs without a result
	err     error
	ran     []string
	runs    int
}

func (s *suite) List(context.Context) ([]readiness.Spec, error) { return s.specs, nil }

func (s *suite) Run(_ context.Context, specs []readiness.Spec) (map[string]readiness.SpecResult, error) {
	s.runs++
	results := map[string]readiness.SpecResult{}
	for _, spec := range specs {
		s.ran = append(s.ran, spec.Name)
		r, ok := s.results[spec.Name]
		if !ok {
			r = readiness.SpecResult{Result: readiness.Proved, Seconds: 2}
		}
		r.Name = spec.Name
		if !slices.Contains(s.lost, spec.Name) {
			results[spec.Name] = r
		}
	}
	return results, s.err
}

// kubelet plays the kubelets.
type kubelet struct {
	logs    string
	metrics map[string]string
	err     error
}

func (k kubelet) Logs(context.Context, string, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(k.logs)), k.err
}

func (k kubelet) Metrics(_ context.Context, _, path string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(k.metrics[path])), k.err
}

func healthy() kubelet {
	return kubelet{logs: "I1123 kubelet started\n", metrics: map[string]string{
		"metrics": "# HELP kubelet_running_pods x\nkubelet_running_pods 3\n" +
			"kubelet_running_containers{container_state=\"exited\"} 1\n" +
			"kubelet_running_containers{container_state=\"running\"} 2\n",
		"metrics/resource": "node_cpu_usage_seconds_total 1.5 2\nnode_memory_working_set_bytes 3 4\n" +
			"container_cpu_usage_seconds_total{container=\"a\"} 1 2\ncontainer_memory_working_set_bytes{container=\"a\"} 1 2\n",
	}}
}

// legs returns a smoke test in which all legs passed but these.
func legs(node string, others ...smoke.Leg) func(context.Context) (smoke.Report, error) {
	return func(context.Context) (smoke.Report, error) {
		n := smoke.NodeReport{Outcome: fleet.Outcome{Name: node}, Build: "10.0.20348.2849"}
		var err error
		for _, name := range []string{smoke.Scheduled, smoke.Started, smoke.LogsAndExec, smoke.Resolves, smoke.ReachesLinux,
			smoke.ReachesService, smoke.ReachedFromLinux, smoke.ReachesAPI} {
			leg := smoke.Leg{Name: name, Result: smoke.Passed, Seconds: 1}
			for _, other := range others {
				if other.Name == name {
					leg, err = other, &smoke.FailedError{}
				}
			}
			n.Legs = append(n.Legs, leg)
		}
		return smoke.Report{Nodes: []smoke.NodeReport{n}}, err
	}
}

func spec(name string, labels ...string) readiness.Spec {
	return readiness.Spec{Name: name, Labels: append(labels, "sig-windows")}
}

func bySpec(id, text string, needs ...string) readiness.Case {
	return readiness.Case{ID: id, Category: "node", Needs: needs,
		Specs: []readiness.Selection{{Labels: []string{"sig-windows"}, Texts: []string{text}, Count: 1}}}
}

func byProbe(id, probe string) readiness.Case {
	return readiness.Case{ID: id, Category: "node", Probe: probe}
}

// results returns RESULT or RESULT: MESSAGE of each case.
func results(r readiness.Report) map[string]string {
	all := map[string]string{}
	for _, c := range r.Cases {
		all[c.ID] = c.Result
		if c.Message != "" {
			all[c.ID] += ": " + c.Message
		}
	}
	return all
}

func TestRunProvesCasesInOneProcess(t *testing.T) {
	s := &suite{specs: []readiness.Spec{spec("one"), spec("two"), spec("three"), spec("others")}}
	report, err := readiness.Run(t.Context(), clusterOf(node("win", "windows"), node("lin", "linux")), readiness.Options{
		Cases: []readiness.Case{bySpec("a", "one"), byProbe("b", smoke.Started), bySpec("c", "three"),
			byProbe("d", "node-logs"), byProbe("e", "kubelet-metrics")},
		Suite: s, Smoke: legs("win"), Kubelets: healthy(),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "proved", "b": "proved", "c": "proved", "d": "proved", "e": "proved"}
	if diff := cmp.Diff(want, results(report)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"one", "three"}, s.ran); diff != "" || s.runs != 1 {
		t.Errorf("%d runs, specs (-want +got):\n%s", s.runs, diff)
	}
	if report.Summary != (readiness.Summary{Proved: 5}) || !strings.HasPrefix(report.Sentence(), "5 of 5 cases proved in") {
		t.Errorf("%+v: %s", report.Summary, report.Sentence())
	}
}

// A skip is never a pass, and neither is a result that is missing.
func TestOnlyAPassIsAPass(t *testing.T) {
	s := &suite{
		specs: []readiness.Spec{spec("good"), spec("bad"), spec("shy"), spec("lost"), spec("twin 1"), spec("twin 2"),
			spec("loud", readiness.Disruptive), spec("linux [LinuxOnly]")},
		results: map[string]readiness.SpecResult{
			"bad":    {Result: readiness.Failed, Message: "timed out"},
			"shy":    {Result: readiness.NotPossible, Message: "no GPU"},
			"twin 2": {Result: readiness.NotPossible, Message: "no SMB"},
		},
		lost: []string{"lost"},
	}
	twins := bySpec("twins", "twin")
	twins.Specs[0].Count = 2
	never := bySpec("never", "good")
	never.Impossible = "it skips itself everywhere"
	report, err := readiness.Run(t.Context(), clusterOf(node("win", "windows"), node("lin", "linux")), readiness.Options{
		Cases: []readiness.Case{bySpec("good", "good"), bySpec("bad", "bad"), bySpec("shy", "shy"), bySpec("lost", "lost"),
			twins, bySpec("loud", "loud"), bySpec("gone", "no such spec"), bySpec("linux", "linux"), never,
			bySpec("placed", "good", "placement"), bySpec("hyper-v", "good", "hyper-v"), byProbe("dns", smoke.Resolves),
			byProbe("api", smoke.ReachesAPI), byProbe("logs", "node-logs")},
		Suite: s, Kubelets: kubelet{logs: "<!doctype html>\n<pre>"},
		Smoke: legs("win", smoke.Leg{Name: smoke.Resolves, Result: smoke.Failed, Message: "no answer"},
			smoke.Leg{Name: smoke.ReachesAPI, Result: smoke.NotRun, Message: "needs started"}),
	})
	var failed *readiness.FailedError
	if !errors.As(err, &failed) || !slices.Equal(failed.Cases, []string{"bad", "dns"}) {
		t.Errorf("the error is %v", err)
	}
	want := map[string]string{
		"good":  "proved",
		"bad":   "failed: timed out",
		"shy":   "notPossible: the spec skipped itself: no GPU",
		"lost":  "notRun: e2e.test reported no result",
		"twins": "notPossible: the spec skipped itself: no SMB",
		"loud":  "notPossible: it disturbs a node and its pods; `swdt readiness run --disruptive` runs it",
		"gone": `notRun: case gone: the selection by labels sig-windows, texts ["no such spec"] matches 0 specs, ` +
			"and should match 1",
		"linux": `notRun: case linux: the spec "linux [LinuxOnly]" is for Linux only`,
		"never": "notPossible: it skips itself everywhere",
		"placed": "notPossible: its pods could start on the Linux node lin, which would prove nothing: " +
			"`kubectl taint node lin swdt.dev/readiness=:NoSchedule` keeps them off",
		"hyper-v": "notPossible: the cluster has no RuntimeClass runhcs-wcow-hypervisor",
		"dns":     "failed: win: no answer",
		"api":     "notRun: win: needs started",
		"logs": "notPossible: win: kubelet on node win does not serve node log queries; set enableSystemLogQuery: true " +
			"in its configuration",
	}
	if diff := cmp.Diff(want, results(report)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	counts := "1 of 14 cases proved, 2 failed, 7 not possible here, 4 not run in"
	if got := report.Sentence(); !strings.HasPrefix(got, counts) {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"case/good"}, report.Names()); diff != "" {
		t.Errorf("-o name (-want +got):\n%s", diff)
	}
}

func TestARunThatProvesNothingIsNoSuccess(t *testing.T) {
	for name, test := range map[string]struct {
		o    readiness.Options
		want []string
	}{
		"no e2e.test":  {readiness.Options{Cases: []readiness.Case{bySpec("a", "one")}}, []string{"a"}},
		"not possible": {readiness.Options{Cases: []readiness.Case{bySpec("a", "one", "domain")}, Suite: &suite{}}, nil},
	} {
		_, err := readiness.Run(t.Context(), clusterOf(node("win", "windows")), test.o)
		var incomplete *readiness.IncompleteError
		if !errors.As(err, &incomplete) || !slices.Equal(incomplete.NotRun, test.want) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	down := node("win", "windows")
	down.Status.Conditions[0].Status = corev1.ConditionFalse
	for _, c := range []*cluster.Cluster{clusterOf(node("lin", "linux")), clusterOf(down)} {
		var none *readiness.NoNodeError
		if _, err := readiness.Run(t.Context(), c, readiness.Options{Cases: cases(t)}); !errors.As(err, &none) {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestACrashOfTheSuiteIsReported(t *testing.T) {
	crash := errors.New("e2e.test crashed")
	s := &suite{specs: []readiness.Spec{spec("one"), spec("two")}, lost: []string{"two"}, err: crash}
	report, err := readiness.Run(t.Context(), clusterOf(node("win", "windows")),
		readiness.Options{Cases: []readiness.Case{bySpec("a", "one"), bySpec("b", "two")}, Suite: s})
	if !errors.Is(err, crash) {
		t.Errorf("the error is %v", err)
	}
	if report.Summary != (readiness.Summary{Proved: 1, NotRun: 1}) {
		t.Errorf("%+v", report.Summary)
	}
}

// Facts of the cluster decide what it can prove; --assume is stronger.
func TestNeeds(t *testing.T) {
	labelled := func(n *corev1.Node) { n.Labels["agentpool"] = "windowsgmsa" }
	old := func(n *corev1.Node) { n.Status.NodeInfo.ContainerRuntimeVersion = "containerd://1.6.27" }
	newest := func(n *corev1.Node) { n.Status.NodeInfo.ContainerRuntimeVersion = "containerd://2.4.2" }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	poor := []runtime.Object{node("win", "windows", old), node("lin", "linux", cordoned)}
	rich := []runtime.Object{node("win", "windows", labelled, newest), node("lin", "linux", tainted),
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "runhcs-wcow-hypervisor"}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "csi",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}}}
	inPoor := []string{"placement", "internet", "network-policy", "containerd-1.6"}
	inRich := []string{"linux-node", "placement", "storage-class", "domain", "internet", "network-policy", "hyper-v",
		"containerd-1.7"}
	for name, test := range map[string]struct {
		objects []runtime.Object
		assume  []string
		want    []string
	}{
		"poor": {poor, nil, inPoor}, "rich": {rich, nil, inRich}, "assumed": {poor, readiness.Needs(), readiness.Needs()},
	} {
		var all []readiness.Case
		for _, need := range readiness.Needs() {
			all = append(all, bySpec(need, "one", need))
		}
		report, _ := readiness.Run(t.Context(), clusterOf(test.objects...),
			readiness.Options{Cases: all, Suite: &suite{specs: []readiness.Spec{spec("one")}}, Assume: test.assume})
		var proved []string
		for _, c := range report.Cases {
			if c.Result == readiness.Proved {
				proved = append(proved, c.ID)
			}
		}
		if diff := cmp.Diff(test.want, proved); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestProbesOfKubelets(t *testing.T) {
	lacking := healthy()
	lacking.metrics["metrics/resource"] = strings.ReplaceAll(lacking.metrics["metrics/resource"], "container_cpu", "x_cpu")
	idle := healthy()
	idle.metrics["metrics"] = strings.ReplaceAll(idle.metrics["metrics"], "} 2", "} 0")
	idle.metrics["metrics/resource"] = "node_cpu_usage_seconds_total 1.5 2\nnode_memory_working_set_bytes 3 4\n"
	for name, test := range map[string]struct {
		probe   string
		kubelet kubelet
		want    string
	}{
		"no container runs": {"kubelet-metrics", idle, "proved"},
		"an empty log": {"node-logs", kubelet{},
			"failed: win: kubelet on node win returned an empty log for the query kubelet"},
		"logs are off": {"node-logs", kubelet{err: &cluster.LogsDisabledError{Node: "win"}}, "notPossible: win: "},
		"no answer":    {"node-logs", kubelet{err: errors.New("refused")}, "failed: win: read the log of kubelet on node win: refused"},
		"a metric is missing": {"kubelet-metrics", lacking,
			"failed: win: metrics/resource of kubelet on node win lacks container_cpu_usage_seconds_total"},
		"no metrics": {"kubelet-metrics", kubelet{},
			"failed: win: metrics of kubelet on node win lacks kubelet_running_pods"},
	} {
		report, _ := readiness.Run(t.Context(), clusterOf(node("win", "windows")),
			readiness.Options{Cases: []readiness.Case{byProbe("p", test.probe)}, Kubelets: test.kubelet})
		if got := results(report)["p"]; !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Each probe of the list is one that a run knows.
func TestEveryProbeIsKnown(t *testing.T) {
	var used []string
	for _, c := range cases(t) {
		if c.Probe != "" {
			used = append(used, c.Probe)
		}
	}
	if diff := cmp.Diff(readiness.Probes(), used, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("probes (-known +used):\n%s", diff)
	}
}

// Probes of package ability run together, and their results are those of the cases. A reboot needs Disruptive.
func TestProbesOfAbilities(t *testing.T) {
	var asked []string
	play := func(_ context.Context, probes []string) ([]ability.Result, error) {
		asked = probes
		return []ability.Result{{Node: "win", Probe: ability.CPULimit, Result: ability.Proved, Seconds: 2},
			{Node: "win-2", Probe: ability.CPULimit, Result: ability.Failed, Message: "used 2 cores"},
			{Node: "win", Probe: ability.SMBVolume, Result: ability.NotPossible, Message: "no driver"},
			{Node: "win", Probe: ability.KubeletRestart, Result: ability.NotRun, Message: "no pod"}}, nil
	}
	all := []readiness.Case{byProbe("cpu", ability.CPULimit), byProbe("smb", ability.SMBVolume),
		byProbe("kubelet", ability.KubeletRestart), byProbe("port", ability.NodePort), byProbe("boot", ability.Reboot)}
	report, _ := readiness.Run(t.Context(), clusterOf(node("win", "windows")), readiness.Options{Cases: all, Ability: play})
	want := map[string]string{
		"cpu": "failed: win-2: used 2 cores", "smb": "notPossible: win: no driver", "kubelet": "notRun: win: no pod",
		"port": "notRun: the probe was not run",
		"boot": "notPossible: it disturbs a node and its pods; `swdt readiness run --disruptive` runs it",
	}
	if diff := cmp.Diff(want, results(report)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if slices.Contains(asked, ability.Reboot) || len(asked) != 4 {
		t.Errorf("asked for %q", asked)
	}
	_, _ = readiness.Run(t.Context(), clusterOf(node("win", "windows")), readiness.Options{Cases: all, Ability: play,
		Disruptive: true})
	if !slices.Contains(asked, ability.Reboot) {
		t.Errorf("asked for %q", asked)
	}
	broken := func(context.Context, []string) ([]ability.Result, error) { return nil, errors.New("no namespace") }
	report, err := readiness.Run(t.Context(), clusterOf(node("win", "windows")), readiness.Options{Cases: all[:1],
		Ability: broken})
	if got := results(report)["cpu"]; err == nil || got != "notRun: no namespace" {
		t.Errorf("%v: %s", err, got)
	}
}

func TestAnInterruptedRunKeepsItsResults(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("interrupted")
	report, err := readiness.Run(ctx, clusterOf(node("win", "windows")), readiness.Options{
		Cases: []readiness.Case{byProbe("a", "kubelet-metrics"), byProbe("b", smoke.Resolves), bySpec("c", "one")},
		Suite: &suite{specs: []readiness.Spec{spec("one")}}, Kubelets: healthy(),
		Smoke: func(context.Context) (smoke.Report, error) { cancel(stop); return smoke.Report{}, stop },
	})
	if !errors.Is(err, stop) || report.Summary != (readiness.Summary{Proved: 1, NotRun: 2}) {
		t.Errorf("error %v, %+v", err, report.Summary)
	}
}

func TestReportIsRead(t *testing.T) {
	report, err := readiness.Run(t.Context(), clusterOf(node("win", "windows")), readiness.Options{
		Cases: []readiness.Case{byProbe("a", "kubelet-metrics")}, Kubelets: healthy()})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readiness.ReadReport(text, "r.json")
	if diff := cmp.Diff(report, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	// The counts of a report are made of its cases, whatever the file says.
	lying := strings.Replace(string(text), `"result":"proved"`, `"result":"skipped"`, 1)
	got, err = readiness.ReadReport([]byte(lying), "r.json")
	if err != nil || got.Summary.Proved != 0 || got.Failure() == nil {
		t.Errorf("%+v, %v", got.Summary, err)
	}
	for _, wrong := range []string{"", "[]", `{"cases":[]}`, "null"} {
		var refused *readiness.ReportError
		if _, err := readiness.ReadReport([]byte(wrong), "r.json"); !errors.As(err, &refused) {
			t.Errorf("%q: the error is %v", wrong, err)
		}
	}
}

func FuzzReadReport(f *testing.F) {
	f.Add([]byte(`{"cases":[{"id":"a","result":"proved","specs":[{"name":"x"}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := readiness.ReadReport(text, "r.json")
		if err != nil {
			return
		}
		if s := r.Summary; s.Proved+s.Failed+s.NotPossible+s.NotRun != len(r.Cases) {
			t.Errorf("%+v counts %d cases", s, len(r.Cases))
		}
	})
}
