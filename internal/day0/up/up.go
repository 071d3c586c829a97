// Package up makes a whole cluster with its Windows nodes, from nothing to Ready nodes, and removes
// the cluster again. Its stages do the work of swdt cluster, network, vm, setup and join. Stages
// that do not need each other run at the same time: the VMs start while kind makes the control
// plane.
//
//   - up.go: the stages of Up; down.go: the stages of Down
//   - plane.go: the control plane; kind.go: a control plane of kind; existing.go: a control plane that
//     another tool has made
//   - network.go: the pod network; problems.go: its errors as problems of the document
//   - before.go: mistakes that are found before anything is made; overlap.go: addresses of nodes in the
//     cluster's ranges
//   - combinations.go: combinations of Windows and other programs that are known not to work
//   - check.go: the smoke test
//   - stage.go: running stages in the order in which they need each other
//   - connection.go: the connections to nodes, which the stages of a node share
//   - estimate.go: how long the stages took earlier; ready.go: the time to a Ready node
//   - record.go: the things that Up has made
//   - report.go: the result
//
// Every stage first compares the present state with the wanted one, so a second Up changes nothing,
// and an Up after an interruption continues. Up records each thing before it makes the thing. Down
// removes the recorded things and nothing else.
package up

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/localfile/earlier"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Options are the inputs of Up and Down besides the documents.
type Options struct {
	// Clusters are the clusters of kind; nil if the control plane of the document exists.
	Clusters *kindcluster.Clusters
	Machines *vm.Machines
	// Connect connects to the machine of a node.
	Connect func(context.Context, config.Document, ui.Reporter) (*node.Node, error)
	// Reporter returns the reporter of a node, or of the cluster for "".
	Reporter func(node string) ui.Reporter
	// Board shows the stages; nil: they are not shown. Its Reporter method makes the reporters that
	// Reporter returns.
	Board *ui.Board
	// Times has how long stages took earlier.
	Times earlier.Times
	// Join are the options of every join. Up sets their Cluster and DryRun itself. If
	// Join.AllowReboot is set, the setup of a node may reboot the node too.
	Join join.Options
	// Kubeconfig is the file to which a new cluster is added; empty: kubectl's default.
	Kubeconfig string
	// NetworkLimit bounds the wait for each condition of the pod network.
	NetworkLimit time.Duration
	// BootLimit bounds the wait for the SSH server of a VM that has been started.
	BootLimit time.Duration
	// Smoke has the options of the smoke test, which is the last stage; nil: there is no smoke test.
	Smoke *smoke.Options
	// Only are the kinds of stages that Up runs; empty: all. The things that the other stages
	// would make must exist.
	Only []string
	// DryRun makes Up compare, and change nothing.
	DryRun bool
	// Confirm asks the user whether to remove the things. Down calls Confirm if there is something
	// to remove. If Confirm returns an error, Down changes nothing and returns that error.
	Confirm func(ctx context.Context, things []string) error
	// NoDrain makes Down evict no pods, and continue without the nodes that do not answer.
	NoDrain bool
	// Records is the folder of the records; empty: the default of openNotes.
	Records string
}

// work is one run of up or down.
type work struct {
	Options
	command   string // up or down
	cluster   config.ClusterDocument
	documents []config.Document
	notes     *notes
	checked   *smoke.Report // nil: the smoke test was not run

	mu          sync.Mutex
	silent      []string               // the nodes that did not answer Down
	left        []string               // the things that stages of Down did not remove
	found       *controlPlane          // the control plane, once a stage has found it; nil: none yet
	connections map[string]*connection // by the name of the node
	// warned has what warnEarly has reported, by the name of the node.
	warned map[string][]finding.Problem
}

// begin returns the work of a command on a cluster, and locks the cluster's record.
func begin(command string, doc config.ClusterDocument, documents []config.Document, o Options) (*work, error) {
	w := &work{Options: o, command: command, cluster: doc, documents: documents}
	var err error
	if w.notes, err = openNotes(o.Records, w.name()); err != nil {
		return nil, err
	}
	if w.existing() && w.notes.now().Cluster {
		return nil, errors.Join(&OtherPlaneError{Name: w.name()}, w.notes.close())
	}
	return w, nil
}

// Up makes the cluster and its nodes, which documents describe. If a stage fails, the report still
// has all stages. If Up fails before its first stage, the report is empty.
func Up(ctx context.Context, doc config.ClusterDocument, documents []config.Document, o Options) (Report, error) {
	for _, document := range documents { // reject wrong settings before any stage begins
		if wantsJoin(document) {
			o.Join.Cluster = new(cluster.Cluster) // stands for the cluster that the join will have
			if err := join.Validate(withControlPlane(document, controlPlane{name: "x", address: "x"}), o.Join); err != nil {
				return Report{}, err
			}
		}
	}
	if err := (&work{Options: o, cluster: doc, documents: documents}).checkDocuments(ctx); err != nil {
		return Report{}, err
	}
	w, err := begin("up", doc, documents, o)
	if err != nil {
		return Report{}, err
	}
	defer w.notes.close()
	began, making := time.Now(), w.making()
	defer w.disconnect(ctx)
	w.connectEarly(ctx, making)
	w.warnEarly(ctx, making)
	stages, err := w.run(ctx, making)
	report := newReport(w.name(), stages, nil, time.Since(began), err)
	report.Check, report.Ready = w.checked, readyTimes(making)
	return report, err
}

func (w *work) name() string { return w.cluster.Cluster.Metadata.Name }

// wantsJoin reports whether a node must join the cluster, since its file names a version of
// Kubernetes.
func wantsJoin(document config.Document) bool { return document.Node.Spec.Kubernetes.Version != "" }

// wantsSetup reports whether the setup of a node has any step.
func wantsSetup(document config.Document) bool {
	return len(setup.Steps(nil, document.Node.Spec.Setup, setup.Options{Resolve: document.Resolve})) > 0
}

// making returns the stages of Up whose kinds w.Only contains.
func (w *work) making() []*stage {
	var all []*stage
	add := func(s *stage) *stage {
		if len(w.Only) > 0 && !slices.Contains(w.Only, s.kind) {
			return nil
		}
		s.needs = slices.DeleteFunc(s.needs, func(needed *stage) bool { return needed == nil })
		all = append(all, s)
		return s
	}
	control := add(&stage{kind: Cluster, run: w.plane().ensure})
	var pods *stage
	if w.cluster.Cluster.Spec.Network.Plugin != v1alpha1.NoPlugin {
		pods = add(&stage{kind: Network, needs: []*stage{control}, run: w.installNetwork(control)})
	}
	before := []*stage{control, pods}
	for _, document := range w.documents {
		name := document.Node.Metadata.Name
		var machine, settings *stage
		if document.Node.Spec.Machine != nil {
			machine = add(&stage{kind: Machine, node: name, run: w.makeMachine(document)})
		}
		if wantsSetup(document) {
			settings = add(&stage{kind: Setup, node: name, needs: []*stage{machine}, run: w.setUp(document, machine)})
		}
		if wantsJoin(document) {
			needs := []*stage{control, pods, machine, settings}
			joined := add(&stage{kind: Join, node: name, needs: needs, run: w.join(document, control, machine)})
			before = append(before, joined)
		}
	}
	if w.Smoke != nil {
		add(&stage{kind: Check, needs: before, run: w.check(before)})
	}
	return all
}

func (w *work) makeMachine(document config.Document) func(context.Context, ui.Reporter) (done, error) {
	name := document.Node.Metadata.Name
	return func(ctx context.Context, r ui.Reporter) (done, error) {
		if w.DryRun {
			return w.planMachine(ctx, document, r)
		}
		if !w.Machines.Exist(name) {
			if err := w.notes.change(func(made *record) { made.Machines = with(made.Machines, name) }); err != nil {
				return done{}, err
			}
		}
		made, err := w.Machines.Create(ctx, document, r)
		if err != nil {
			return done{}, err
		}
		started, err := w.Machines.Start(ctx, name, r)
		if err != nil {
			return done{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, w.BootLimit)
		defer cancel()
		if err := w.Machines.Assign(ctx, name, r); err != nil {
			return done{}, err
		}
		answers, err := w.Machines.Await(ctx, name, r)
		changed := made.Result == fleet.Changed || started.Result == fleet.Changed
		return done{changed, "its SSH server answers at " + answers.Address}, err
	}
}

// planMachine returns the result of a dry run for a VM: whether Up would make or start it.
func (w *work) planMachine(ctx context.Context, document config.Document, r ui.Reporter) (done, error) {
	name := document.Node.Metadata.Name
	if !w.Machines.Exist(name) {
		_, err := w.Machines.Plan(ctx, document, r)
		return done{true, "make the VM and start it"}, err
	}
	reports, err := w.Machines.List(ctx, name)
	if err != nil || len(reports) != 1 {
		return done{}, err
	}
	if reports[0].State == vm.Running {
		return done{message: "the VM runs"}, nil
	}
	return done{true, "start the VM, which is " + string(reports[0].State)}, nil
}

// afterwards returns the result of a stage in a dry run if the stage cannot compare anything yet:
// one of the stages that it needs would first have to change something. If ok is false, the stage
// must compare.
func (w *work) afterwards(needs ...*stage) (result done, ok bool) {
	for _, needed := range needs {
		if w.DryRun && needed != nil && needed.result.Result == fleet.Changed && needed.kind != Setup {
			return done{true, "after " + label(needed.kind, needed.node)}, true
		}
	}
	return done{}, false
}

func (w *work) setUp(document config.Document, machine *stage) func(context.Context, ui.Reporter) (done, error) {
	return func(ctx context.Context, r ui.Reporter) (done, error) {
		if result, ok := w.afterwards(machine); ok {
			return result, nil
		}
		n, err := w.connect(ctx, document, r)
		if err != nil {
			return done{}, err
		}
		steps := setup.Steps(n, document.Node.Spec.Setup, setup.Options{Resolve: document.Resolve})
		results, err := plan.Run(ctx, steps, plan.Options{Machine: n, DryRun: w.DryRun, AllowReboot: w.Join.AllowReboot}, r)
		result := w.summary(results)
		if result.changed && !w.DryRun {
			w.reconnect(ctx, document.Node.Metadata.Name)
		}
		return result, err
	}
}

func (w *work) join(document config.Document, needs ...*stage) func(context.Context, ui.Reporter) (done, error) {
	name := document.Node.Metadata.Name
	return func(ctx context.Context, r ui.Reporter) (done, error) {
		if result, ok := w.afterwards(needs...); ok {
			return result, nil
		}
		control, err := w.controlPlane(ctx)
		if err != nil {
			return done{}, err
		}
		n, err := w.connect(ctx, document, r)
		if err != nil {
			return done{}, err
		}
		if err := w.recordNode(ctx, n, name); err != nil {
			return done{}, err
		}
		options := w.Join
		options.Cluster, options.DryRun = control.api, w.DryRun
		options.Checked = func(problems []finding.Problem) { finding.Warn(r, w.notYetWarned(name, problems)) }
		result, err := join.Run(ctx, n, withControlPlane(document, control), options, r)
		return w.summary(result.Steps), err
	}
}

// recordNode records that Up joins a machine to the cluster, unless swdt has joined it before.
func (w *work) recordNode(ctx context.Context, n *node.Node, name string) error {
	if w.DryRun || slices.Contains(w.notes.now().Nodes, name) {
		return nil
	}
	own, err := join.Own(ctx, n)
	if err != nil || own.Joined {
		return err
	}
	return w.notes.change(func(made *record) { made.Nodes = with(made.Nodes, name) })
}

// summary counts the steps that changed something or, in a dry run, would change something.
func (w *work) summary(results []plan.StepResult) done {
	changed := 0
	for _, result := range results {
		if result.State == plan.Changed || w.DryRun && result.State == plan.Skipped {
			changed++
		}
	}
	words := "%d of %d steps changed something"
	if w.DryRun {
		words = "%d of %d steps would change something"
	}
	return done{changed > 0, fmt.Sprintf(words, changed, len(results))}
}
