package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/build"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/deploy"
	"github.com/swdt-dev/swdt/internal/source"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/watch"
)

// runWatch pushes whenever a source changes, until Ctrl-C or q.
func (a *app) runWatch(ctx context.Context, s *session, o *kubernetesOptions, options deploy.Options, builds *sourceBuilds) error {
	if a.global.dryRun {
		return usagef("--watch and --dry-run: choose one; `push --dry-run` shows what a push would do now")
	}
	s.quiet = true
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer s.story.End()

	w := &watching{session: s, options: options, builds: builds, free: make(chan struct{}, a.global.parallel)}
	w.teller = newTeller(s)
	plan, err := w.plan(o)
	if err != nil {
		return err
	}
	keys := a.newKeys(w, stop)
	defer keys.end()
	if keys != nil {
		s.options.Prompt = keys.early(s.options.Prompt)
		w.teller.help, w.teller.settled = keyHelp, keys.begin(ctx)
		plan.Commands = keys.commands
	}
	for _, remote := range w.remotes {
		remote.nodeOptions = s.options
	}
	if plan.Notifier, err = watch.NewNotifier(); err != nil {
		s.story.Node("").Debug("%v; looking now and then instead", err)
		plan.Notifier = nil
	}
	return explain(ctx, watch.Run(ctx, plan))
}

// watching is what a watch is made of.
type watching struct {
	*session
	options deploy.Options
	builds  *sourceBuilds
	remotes []*remote
	teller  *teller
	free    chan struct{} // a place for each node that is worked on at a time

	known    map[string]*watch.Binary // by path
	requests map[*watch.Binary]source.Request
}

func (w *watching) plan(o *kubernetesOptions) (watch.Options, error) {
	w.requests = map[*watch.Binary]source.Request{}
	plan := watch.Options{Examine: w.examine, Prepare: w.prepare, Tell: w.teller.tell, Force: o.force}
	w.known = map[string]*watch.Binary{}
	made := map[*sourceBuild]*watch.Build{}
	for _, document := range w.documents {
		name := document.Node.Metadata.Name
		remote := &remote{watching: w, document: document, reporter: w.reporter(document)}
		target := &watch.Target{Name: name, Remote: remote}
		for _, p := range document.Node.Spec.Kubernetes.Provisioners {
			if !selected(p.Name, o.only) {
				continue
			}
			binary, err := w.binary(document, p, made)
			if err != nil {
				return plan, err
			}
			if binary != nil && !slices.Contains(plan.Binaries, binary) {
				plan.Binaries = append(plan.Binaries, binary)
			}
			component := watch.Component{Name: p.Name, Binary: binary}
			target.Components = append(target.Components, component)
			remote.components = append(remote.components, component)
		}
		if len(target.Components) == 0 {
			continue // --only names components of other nodes
		}
		w.remotes = append(w.remotes, remote)
		plan.Targets = append(plan.Targets, target)
	}
	if len(plan.Binaries) == 0 {
		return plan, usagef("--watch: there is nothing on this machine to watch; make a provisioner's sourceURL a path")
	}
	w.teller.nodes = len(plan.Targets)
	return plan, nil
}

// binary is the local file of a provisioner; nil where it is downloaded. Nodes
// that get the same file share it.
func (w *watching) binary(document config.Document, p v1alpha1.Provisioner, made map[*sourceBuild]*watch.Build) (*watch.Binary, error) {
	request := source.Request{
		URL: document.Resolve(p.SourceURL), SHA256: p.SHA256,
		Executable: strings.EqualFold(filepath.Ext(p.Destination), ".exe"),
	}
	path, local, err := request.LocalPath()
	if err != nil || !local {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("find %s: %w", request.URL, err)
	}
	binary, ok := w.known[path]
	if !ok {
		binary = &watch.Binary{Name: p.Name, Path: path}
		w.known[path], w.requests[binary] = binary, request
	}
	if p.Build != nil && binary.Build == nil {
		shared, err := w.builds.add(document, p)
		if err != nil {
			return nil, err
		}
		if made[shared] == nil {
			made[shared] = &watch.Build{
				Name: shared.request.Name, Dir: shared.request.Dir, Patterns: shared.patterns,
				Run: func(ctx context.Context) error { return build.Run(ctx, shared.request) },
			}
		}
		binary.Build = made[shared]
	}
	return binary, nil
}

// examine reads a file once it seems to be written, so that its hash is known by
// the time it is pushed.
func (w *watching) examine(ctx context.Context, b *watch.Binary) error {
	_, err := w.options.Sources.Obtain(ctx, w.requests[b], ui.Discard{})
	return err
}

// prepare makes the patches that a push of the file is likely to send.
func (w *watching) prepare(ctx context.Context, b *watch.Binary) {
	binary, err := w.options.Sources.Obtain(ctx, w.requests[b], ui.Discard{})
	if err != nil {
		return // the push says so
	}
	for _, remote := range w.remotes {
		for _, component := range remote.components {
			if component.Binary == b {
				remote.prepare(ctx, component.Name, binary)
			}
		}
	}
}
