package join_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/platform/imitation/criserver"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/testing/memnet"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// programs are artifacts that are made on demand, in the requested version.
type programs struct {
	folder  string
	sources *source.Set
	fault   map[string]simulated.Fault // by program
}

func (p *programs) Resolve(ctx context.Context, wish artifact.Wish, r ui.Reporter) (artifact.Set, error) {
	names := []string{string(wish.Component)}
	if wish.Component == artifact.Containerd {
		names = append(names, "containerd-shim-runhcs-v1", "ctr")
	}
	set := artifact.Set{Version: wish.Version, From: "a test"}
	for _, name := range names {
		spec := simulated.BinarySpec{Name: name, Version: "v" + wish.Version, Machine: wish.Arch, Fault: p.fault[name]}
		path := filepath.Join(p.folder, fmt.Sprintf("%s-%s-%s.exe", name, wish.Version, spec.Fault))
		if _, err := os.Stat(path); err != nil {
			if err := os.WriteFile(path, simulated.Binary(spec), 0o600); err != nil {
				return set, err
			}
		}
		binary, err := p.sources.Obtain(ctx, source.Request{URL: path, Executable: true}, r)
		if err != nil {
			return set, err
		}
		set.Files = append(set.Files, artifact.File{Name: name + ".exe", Binary: binary})
	}
	return set, nil
}

// lab is a bare machine and a cluster that it can join.
type lab struct {
	*nodetest.Node
	t        *testing.T
	control  *control
	cluster  *cluster.Cluster
	programs *programs
	story    *story
	doc      config.Document
	ready    time.Duration
}

// control is the control plane of a test, and the network on which it listens.
type control struct {
	*apiserver.Cluster
	network *memnet.Network
}

// subtest runs a subtest in a bubble of testing/synctest, whose clock goes on as soon as all that runs waits.
func subtest(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return newNodeOf(t, newControl(t, apiserver.Options{NodeGrace: 3 * time.Second}), "win1")
}

func newControl(t *testing.T, o apiserver.Options) *control {
	t.Helper()
	return newControlOn(t, &memnet.Network{}, o)
}

func newControlOn(t *testing.T, network *memnet.Network, o apiserver.Options) *control {
	t.Helper()
	c := &control{network: network}
	if o.Listener == nil {
		o.Listener = c.network.Listen()
	}
	var err error
	if c.Cluster, err = apiserver.Start(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newNodeOf returns another machine for a cluster.
func newNodeOf(t *testing.T, control *control, name string, images ...criserver.Image) *lab {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := control.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	opened, err := cluster.Open(cluster.Options{Kubeconfig: kubeconfig, Dialer: control.network})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{
		Node: nodetest.Start(t, name, simulated.Options{
			Hostname: strings.ToUpper(name), Preset: simulated.Minimal, Images: images,
			Dial: control.network.DialContext, RealNetwork: true,
		}),
		t: t, control: control, cluster: opened, story: &story{}, ready: 20 * time.Second,
		programs: &programs{
			folder: t.TempDir(), sources: source.NewSet(source.Options{}), fault: map[string]simulated.Fault{},
		},
	}
	l.doc = document(name)
	return l
}

func document(name string) config.Document {
	doc := config.Document{File: config.Stdin, Node: v1alpha1.Node{Metadata: v1alpha1.Metadata{Name: name}}}
	doc.Node.Spec.Kubernetes.Version = "1.36.3"
	doc.Node.Spec.Kubernetes.Containerd.Version = "1.7.12"
	v1alpha1.SetDefaults(&doc.Node)
	return doc
}

func (l *lab) spec() *v1alpha1.Kubernetes { return &l.doc.Node.Spec.Kubernetes }

func (l *lab) options() join.Options {
	return join.Options{
		Cluster: l.cluster, Artifacts: l.programs, Sources: l.programs.sources,
		ReadyTimeout: l.ready, Reporter: l.story, Holder: "tester",
	}
}

func (l *lab) run(ctx context.Context, steps []plan.Step, err error, dryRun bool) ([]plan.StepResult, error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
	options := plan.Options{Ordered: true, AllowReboot: true, DryRun: dryRun, Holder: "tester", Machine: rebooted{l.Node.Node, l}}
	return plan.Run(ctx, steps, options, l.story)
}

// rebooted is a node that asks often at first whether it has rebooted, and then ever more rarely: a reboot that never
// comes is awaited for many minutes.
type rebooted struct {
	*node.Node
	lab *lab
}

func (r rebooted) AwaitReboot(ctx context.Context, bootID string) error {
	l := r.lab
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		if err := l.Reconnect(ctx); err == nil {
			facts, err := l.Node.Node.Machine.Facts(ctx, nil)
			if err == nil && facts.GetBootId() != bootID {
				return nil
			}
		}
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
	}
}

// join joins the machine.
func (l *lab) join() ([]plan.StepResult, error) {
	l.t.Helper()
	steps, err := join.Steps(l.Node.Node, l.doc, l.options())
	return l.run(l.t.Context(), steps, err, false)
}

func (l *lab) mustJoin() []plan.StepResult {
	l.t.Helper()
	results, err := l.join()
	if err != nil {
		l.t.Fatalf("join: %v\n%s", err, table(results))
	}
	return results
}

func (l *lab) resetWith(o join.ResetOptions) ([]plan.StepResult, error) {
	l.t.Helper()
	steps, err := join.Reset(l.Node.Node, l.doc, o)
	return l.run(l.t.Context(), steps, err, false)
}

// isReady checks that the cluster reports the node as it should be.
func (l *lab) isReady() cluster.Node {
	l.t.Helper()
	n, err := l.cluster.Node(l.t.Context(), l.doc.Node.Metadata.Name)
	if err != nil {
		l.t.Fatal(err)
	}
	if !n.Ready {
		l.t.Fatalf("node %s is %s", n.Name, n.State())
	}
	return n
}

func table(results []plan.StepResult) string {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%-20s %-10s %s | %s\n", r.Name, r.State, r.Change, r.Message)
	}
	return b.String()
}

// changed returns the names of the steps that changed something.
func changed(results []plan.StepResult) []string {
	var names []string
	for _, r := range results {
		if r.State != plan.OK {
			names = append(names, r.Name)
		}
	}
	return names
}

// nothing fails the test if a step found something to do.
func nothing(t *testing.T, results []plan.StepResult, err error) {
	t.Helper()
	if err != nil || len(changed(results)) > 0 {
		t.Fatalf("there was something to do: %v\n%s", err, table(results))
	}
}

// put and get access the machine's files without swdt.
func (l *lab) put(path, content string) { l.Machine.WriteFile(path, []byte(content)) }

func (l *lab) get(path string) string {
	content, err := l.Machine.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(content)
}
