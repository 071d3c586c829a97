package trial_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/evidence"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/proof/trial"
	"github.com/swdt-dev/swdt/internal/proof/verdict"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/testing/suitetest"
	"github.com/swdt-dev/swdt/internal/wait"
)

// shared is a folder for all tests of the package, with the stand-in for e2e.test.
var shared string

// helper is the environment variable with the options of a process that a test kills.
const helper = "SWDT_TEST_TRIAL"

func TestMain(m *testing.M) {
	if text := os.Getenv(helper); text != "" {
		if err := runHelper(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	folder, err := os.MkdirTemp("", "swdt-trial-")
	if err != nil {
		panic(err)
	}
	shared = folder
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// helperOptions are the options of the process that a test kills.
type helperOptions struct{ Binary, Kubeconfig, Folder, Records, History, Focus string }

func runHelper(text string) error {
	var h helperOptions
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return err
	}
	records, err := leftover.Open(h.Records)
	if err != nil {
		return err
	}
	c, err := cluster.Open(cluster.Options{Kubeconfig: h.Kubeconfig})
	if err != nil {
		return err
	}
	_, err = trial.Run(context.Background(), c, trial.Options{Source: trial.Source{Path: h.Binary},
		Selection: suite.Selection{Focus: []string{h.Focus}}, Kubeconfig: h.Kubeconfig, Folder: h.Folder, Records: records,
		History: h.History})
	return err
}

// bench is a cluster in memory with a Windows node, and the stand-in for e2e.test.
type bench struct {
	*cluster.Cluster
	api     *apiserver.Cluster
	options trial.Options
	records string // the folder
}

func newBench(t *testing.T) *bench {
	t.Helper()
	binary := filepath.Join(shared, "e2e.test")
	if _, err := os.Stat(binary); err != nil {
		suitetest.BuildIn(t, shared)
	}
	api, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := api.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(cluster.Options{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Cluster: c, api: api, records: filepath.Join(folder, "records")}
	records, err := leftover.Open(b.records)
	if err != nil {
		t.Fatal(err)
	}
	b.options = trial.Options{Source: trial.Source{Path: binary}, Kubeconfig: kubeconfig, Records: records,
		Folder: filepath.Join(folder, "results"), History: filepath.Join(folder, "durations.json")}
	b.plant(t, "win-1")
	return b
}

// plant adds a Ready Windows node.
func (b *bench) plant(t *testing.T, name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{"kubernetes.io/os": "windows"}}}
	made, err := b.Clientset().CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status.NodeInfo.KernelVersion = "10.0.20348.2849"
	made.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastHeartbeatTime: metav1.Now()}}
	if _, err := b.Clientset().CoreV1().Nodes().UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	err = wait.Condition{Name: "the node without taints", Interval: 20 * time.Millisecond, Limit: 30 * time.Second,
		Look: func(ctx context.Context) error {
			n, err := b.Clientset().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err == nil && len(n.Spec.Taints) > 0 {
				n.Spec.Taints = nil
				_, err = b.Clientset().CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
				err = errors.Join(err, errors.New("it had taints"))
			}
			return err
		}}.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

// run runs the specs that match, in a folder of its own.
func (b *bench) run(ctx context.Context, t *testing.T, focus string, change ...func(*trial.Options)) (verdict.Report,
	error) {
	t.Helper()
	o := b.options
	o.Selection = suite.Selection{Focus: []string{focus}}
	o.Folder = filepath.Join(t.TempDir(), "results")
	for _, c := range change {
		c(&o)
	}
	return trial.Run(ctx, b.Cluster, o)
}

// namespaces returns the namespaces that runs have made.
func (b *bench) namespaces(t *testing.T) (names []string) {
	t.Helper()
	all, err := b.Clientset().CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "e2e-run"})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all.Items {
		names = append(names, n.Name)
	}
	return names
}

func words(r verdict.Report) map[string]string {
	all := map[string]string{}
	for _, s := range r.Specs {
		_, name, _ := strings.Cut(s.Name, "should ")
		all[name] = s.Words()
	}
	return all
}

func TestVerdictsOfRepeatedRuns(t *testing.T) {
	t.Setenv("SPECS_STATE", t.TempDir())
	b := newBench(t)
	r, err := b.run(t.Context(), t, "should (pass|fail|skip|panic|sometimes)", func(o *trial.Options) { o.Runs = 4 })
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"pass [Conformance]": "passed (4 of 4)", "fail": "failed (4 of 4)", "skip itself": "skipped",
		"panic": "failed (4 of 4)", "sometimes fail [Flaky]": "flaky (2 of 4 failed)"}
	if diff := cmp.Diff(want, words(r)); diff != "" || r.Result != verdict.SomeFailed {
		t.Errorf("%s (-want +got)\n%s", r.Result, diff)
	}
	for _, name := range []string{verdict.ResultsName, verdict.JUnitName, verdict.PageName, "run-4/output.log"} {
		if info, err := os.Stat(filepath.Join(r.Folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(b.options.History); err != nil {
		t.Errorf("no durations for later estimates: %v", err)
	}
}

func TestUntil(t *testing.T) {
	for _, test := range []struct {
		until trial.Until
		runs  int // of the flaky spec, which fails in the runs 1, 3, …
	}{{trial.FirstFail, 1}, {trial.FirstPass, 2}, {trial.AllRuns, 5}} {
		t.Setenv("SPECS_STATE", t.TempDir())
		r, err := newBench(t).run(t.Context(), t, "sometimes", func(o *trial.Options) { o.Runs, o.Until = 5, test.until })
		if err != nil || r.Runs != test.runs {
			t.Errorf("until %q: %d runs, want %d; %v", test.until, r.Runs, test.runs, err)
		}
	}
}

// Specs that are known are not listed again: e2e.test is started for its version and for the run.
func TestKnownSpecsAreNotListed(t *testing.T) {
	b := newBench(t)
	starts := filepath.Join(t.TempDir(), "starts")
	program := filepath.Join(t.TempDir(), "e2e.test")
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>'%s'\nexec '%s' \"$@\"\n", starts, b.options.Source.Path)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	spec := suite.Spec{Name: "[sig-storage] Volumes should be read"}
	r, err := b.run(t.Context(), t, "", func(o *trial.Options) {
		o.Source.Path, o.Selection = program, suite.Only(spec)
		o.Known = &suite.Listing{Specs: []suite.Spec{spec}, Total: suitetest.Specs}
	})
	if err != nil || r.Result != verdict.AllPassed || r.Total != suitetest.Specs {
		t.Errorf("%v, %+v", err, r)
	}
	text, err := os.ReadFile(starts)
	if err != nil || strings.Contains(string(text), "dry-run") || strings.Count(string(text), "\n") != 2 {
		t.Errorf("%v, e2e.test was started with:\n%s", err, text)
	}
}

func TestNothingIsRunIfNoSpecMatches(t *testing.T) {
	r, err := newBench(t).run(t.Context(), t, "no such spec")
	var none *trial.NoSpecsError
	if !errors.As(err, &none) || none.Total != suitetest.Specs || r.Folder != "" {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestNothingIsRunOnAClusterThatIsUnfit(t *testing.T) {
	b := newBench(t)
	if err := b.Clientset().CoreV1().Nodes().Delete(t.Context(), "win-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r, err := b.run(t.Context(), t, "should pass")
	var unfit *trial.UnfitError
	if !errors.As(err, &unfit) || r.Folder != "" || len(r.Findings) == 0 {
		t.Errorf("%v, %+v", err, r)
	}
	r, err = b.run(t.Context(), t, "should pass", func(o *trial.Options) { o.SkipChecks = true })
	if err != nil || r.Result != verdict.AllPassed {
		t.Errorf("with SkipChecks: %v, %s", err, r.Result)
	}
}

// A failed spec has evidence, a spec that passed has none.
func TestEvidence(t *testing.T) {
	b := newBench(t)
	t.Setenv("SPECS_NODE", "win-1")
	t.Setenv("SPECS_PATIENCE", "300ms")
	r, err := b.run(t.Context(), t, "Pods|should pass", func(o *trial.Options) {
		o.Evidence, o.Runs = &evidence.Options{}, 2
	})
	if err != nil || r.Result != verdict.SomeFailed || len(r.Specs) != 2 {
		t.Fatalf("%v, %+v", err, r)
	}
	if n := len(r.Specs[1].Evidence); n != 0 {
		t.Errorf("%d bundles of a spec that passed", n)
	}
	failed := r.Specs[0].Evidence
	if len(failed) != 2 || failed[1].Run != 2 {
		t.Fatalf("%+v", failed)
	}
	for _, e := range failed {
		text, err := os.ReadFile(filepath.Join(r.Folder, filepath.FromSlash(e.Folder), evidence.SummaryName))
		if err != nil || !strings.Contains(string(text), "Pending on win-1") {
			t.Errorf("%v, the evidence is:\n%s", err, text)
		}
	}
	if again, err := verdict.Load(r.Folder); err != nil || len(again.Specs[0].Evidence) != 2 {
		t.Errorf("%v, %+v", err, again)
	}
}

func TestASkipIsNoPass(t *testing.T) {
	r, err := newBench(t).run(t.Context(), t, "should skip")
	if err != nil || r.Result != verdict.NothingProved || r.Summary.Passed != 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestACrashIsAnErrorWithAReport(t *testing.T) {
	r, err := newBench(t).run(t.Context(), t, "Crash")
	var crash *suite.CrashError
	if !errors.As(err, &crash) || r.Result != verdict.HarnessFailed || r.Summary.NotRun != 1 {
		t.Errorf("%v, %+v", err, r)
	}
	if again, err := verdict.Load(r.Folder); err != nil || again.Error == "" {
		t.Errorf("%v, %+v", err, again)
	}
}

func TestAFolderWithFilesIsRefused(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := newBench(t).run(t.Context(), t, "should pass", func(o *trial.Options) { o.Folder = folder })
	if err == nil || !strings.Contains(err.Error(), "is not empty; name another with --out") {
		t.Errorf("%v", err)
	}
}

// plantOthers makes a namespace of another run.
func (b *bench) plantOthers(t *testing.T) {
	t.Helper()
	labels := map[string]string{"e2e-run": "01234567-89ab-cdef-0123-456789abcdef", "e2e-framework": "pods"}
	_, err := b.Clientset().CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "others", Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNamespacesThatARunLeavesAreRemoved(t *testing.T) {
	b := newBench(t)
	b.plantOthers(t)
	r, err := b.run(t.Context(), t, "Stubborn")
	if err != nil || r.Result != verdict.AllPassed || len(r.Leftovers) != 1 {
		t.Errorf("%v, %s, %q", err, r.Result, r.Leftovers)
	}
	if diff := cmp.Diff([]string{"others"}, b.namespaces(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// awaitNamespace waits until a run has made a namespace beside that of others.
func (b *bench) awaitNamespace(t *testing.T) {
	t.Helper()
	err := wait.Condition{Name: "a namespace", Interval: 50 * time.Millisecond, Limit: time.Minute,
		Look: func(context.Context) error {
			if len(b.namespaces(t)) < 2 {
				return errors.New("there is none")
			}
			return nil
		}}.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnInterruptedRunLeavesNothing(t *testing.T) {
	b := newBench(t)
	b.plantOthers(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	var r verdict.Report
	go func() {
		var err error
		r, err = b.run(ctx, t, "never end|Stubborn")
		done <- err
	}()
	b.awaitNamespace(t)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || r.Result != verdict.HarnessFailed {
		t.Errorf("%v, %s", err, r.Result)
	}
	if diff := cmp.Diff([]string{"others"}, b.namespaces(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// After kill -9 of swdt, the next command removes what the run has left.
func TestTheNextRunRemovesWhatAKilledOneLeft(t *testing.T) {
	b := newBench(t)
	b.plantOthers(t)
	options, err := json.Marshal(helperOptions{Binary: b.options.Source.Path, Kubeconfig: b.options.Kubeconfig,
		Folder: b.options.Folder, Records: b.records, History: b.options.History, Focus: "never end|Stubborn"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := os.RemoveAll(b.options.Folder); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), helper+"="+string(options))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		b.awaitNamespace(t)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		err := wait.Condition{Name: "no namespace of the killed run", Interval: 300 * time.Millisecond, Limit: time.Minute,
			Look: func(ctx context.Context) error {
				if r, err := b.run(ctx, t, "should pass"); err != nil || r.Result != verdict.AllPassed {
					return wait.Stop(fmt.Errorf("%w, %s", err, r.Result))
				}
				if left := b.namespaces(t); len(left) != 1 || left[0] != "others" {
					return fmt.Errorf("left: %q", left)
				}
				return nil
			}}.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(b.records)
	if err != nil || len(entries) > 0 {
		t.Errorf("records are left: %v, %v", entries, err)
	}
}
