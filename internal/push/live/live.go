// Package live pushes to nodes whenever a binary changes: it connects the state
// machine of package watch to real nodes, files and builds.
//
//   - live.go: from node files to the binaries and targets of a watch
//   - remote.go: one node, its connection, and which failures are worth a retry
//   - after.go: runs something after each pushed build, such as tests
//   - narrator.go, event.go: the events for people, and for programs
package live

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/push/build"
	"github.com/swdt-dev/swdt/internal/push/watch"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Options are the settings of a watch, in addition to the node files.
type Options struct {
	// Push has the options of each push. Push.Only selects the components; Push.Force applies to
	// the first push alone.
	Push push.Options
	// Builds are the builds of the node files.
	Builds *build.Set
	// Parallel is the highest number of nodes on which swdt works at a time: it connects to
	// them, pushes or rolls back.
	Parallel int
	// Reporter returns the reporter of a node.
	Reporter func(config.Document) ui.Reporter
	// After runs something after each pushed build; nil: nothing is run.
	After *After
}

// Watch is a watch that is ready to run.
type Watch struct {
	Remotes []*Remote

	options  Options
	plan     watch.Options
	free     chan struct{} // holds one element for each node on which swdt works at present
	binaries map[string]*watch.Binary
	builds   map[*build.Shared]*watch.Build
	requests map[*watch.Binary]source.Request
}

// ErrNothingToWatch means that no selected component comes from a file on this
// machine.
var ErrNothingToWatch = errors.New("there is nothing on this machine to watch; make a provisioner's sourceURL a path")

// New finds the local binaries and builds to watch. It contacts no node.
func New(documents []config.Document, o Options) (*Watch, error) {
	w := &Watch{
		options: o, free: make(chan struct{}, o.Parallel),
		binaries: map[string]*watch.Binary{}, builds: map[*build.Shared]*watch.Build{},
		requests: map[*watch.Binary]source.Request{},
	}
	w.plan = watch.Options{Examine: w.examine, Prepare: w.prepare, Force: o.Push.Force}
	for _, document := range documents {
		if err := w.add(document); err != nil {
			return nil, err
		}
	}
	if len(w.plan.Binaries) == 0 {
		return nil, ErrNothingToWatch
	}
	return w, nil
}

// add adds a node if it has at least one of the selected components.
func (w *Watch) add(document config.Document) error {
	remote := &Remote{watch: w, document: document, reporter: w.options.Reporter(document)}
	for _, p := range document.Node.Spec.Kubernetes.Provisioners {
		if !build.Selected(p.Name, w.options.Push.Only) {
			continue
		}
		binary, err := w.binary(document, p)
		if err != nil {
			return err
		}
		if binary != nil && !slices.Contains(w.plan.Binaries, binary) {
			w.plan.Binaries = append(w.plan.Binaries, binary)
		}
		remote.components = append(remote.components, watch.Component{Name: p.Name, Binary: binary})
	}
	if len(remote.components) > 0 {
		w.Remotes = append(w.Remotes, remote)
		w.plan.Targets = append(w.plan.Targets, &watch.Target{Name: remote.Name(), Remote: remote,
			Components: remote.components})
	}
	return nil
}

// binary returns the local file of a provisioner, or nil if the provisioner's binary is downloaded.
// Nodes that get the same file share one watch.Binary.
func (w *Watch) binary(document config.Document, p v1alpha1.Provisioner) (*watch.Binary, error) {
	request := push.SourceOf(document, p)
	path, local, err := request.LocalPath()
	if err != nil || !local {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("find %s: %w", request.URL, err)
	}
	binary, ok := w.binaries[path]
	if !ok {
		binary = &watch.Binary{Name: p.Name, Path: path}
		w.binaries[path], w.requests[binary] = binary, request
	}
	if p.Build != nil && binary.Build == nil {
		shared, err := w.options.Builds.Add(document, p)
		if err != nil {
			return nil, err
		}
		binary.Build = w.buildOf(shared)
	}
	return binary, nil
}

func (w *Watch) buildOf(shared *build.Shared) *watch.Build {
	if w.builds[shared] == nil {
		w.builds[shared] = &watch.Build{
			Name: shared.Request.Name, Dir: shared.Request.Dir, Patterns: shared.Patterns,
			Run: func(ctx context.Context) error { return build.Run(ctx, shared.Request) },
		}
	}
	return w.builds[shared]
}

// examine obtains a file that seems to be completely written, so that the file's hash is already
// known when the file is pushed.
func (w *Watch) examine(ctx context.Context, b *watch.Binary) error {
	_, err := w.options.Push.Sources.Obtain(ctx, w.requests[b], ui.Discard{})
	return err
}

// prepare makes the patches that a push of the file is likely to send.
func (w *Watch) prepare(ctx context.Context, b *watch.Binary) {
	binary, err := w.options.Push.Sources.Obtain(ctx, w.requests[b], ui.Discard{})
	if err != nil {
		return // the push reports the error
	}
	for _, remote := range w.Remotes {
		for _, component := range remote.components {
			if component.Binary == b {
				remote.prepare(ctx, component.Name, binary)
			}
		}
	}
}

// Run connects to the nodes and pushes until ctx ends or the command watch.Quit arrives. If ctx
// ended, Run returns the cause of that end. commands may be nil.
func (w *Watch) Run(ctx context.Context, o node.Options, commands <-chan watch.Command, report func(watch.Event),
	r ui.Reporter) error {
	for _, remote := range w.Remotes {
		remote.nodeOptions = o
	}
	w.plan.Commands, w.plan.Report = commands, report
	if after := w.options.After; after != nil {
		after.Begin(ctx)
		defer after.End()
		w.plan.Report = func(e watch.Event) {
			report(e)
			after.Report(e)
		}
	}
	var err error
	if w.plan.Notifier, err = watch.NewNotifier(); err != nil {
		r.Debug("%v; looking now and then instead", err)
		w.plan.Notifier = nil
	}
	return watch.Run(ctx, w.plan)
}
