package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/build"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/ui"
)

// sourceBuild is one command and what it is made from. Several provisioners, of
// several nodes, may share it.
type sourceBuild struct {
	request  build.Request
	patterns []string
}

// sourceBuilds are the builds of node files, by what they run.
type sourceBuilds struct {
	byKey map[string]*sourceBuild
	all   []*sourceBuild
}

// buildsOf collects the builds of the selected components, one for those that
// share it.
func buildsOf(documents []config.Document, only []string) (*sourceBuilds, error) {
	builds := &sourceBuilds{byKey: map[string]*sourceBuild{}}
	for _, document := range documents {
		for _, p := range document.Node.Spec.Kubernetes.Provisioners {
			if p.Build == nil || !selected(p.Name, only) {
				continue
			}
			if _, err := builds.add(document, p); err != nil {
				return nil, err
			}
		}
	}
	return builds, nil
}

func selected(name string, only []string) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(o string) bool { return strings.EqualFold(o, name) })
}

// add returns the build of a provisioner, which it shares with those that run
// the same.
func (b *sourceBuilds) add(document config.Document, p v1alpha1.Provisioner) (*sourceBuild, error) {
	dir, err := filepath.Abs(document.Resolve(p.Build.Dir))
	if err != nil {
		return nil, fmt.Errorf("find the folder of %s's build: %w", p.Name, err)
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(p.Build.Env)) {
		env = append(env, name+"="+document.Expand(p.Build.Env[name]))
	}
	key := fmt.Sprintf("%q %q %q %q", dir, p.Build.Command.Shell, p.Build.Command.Args, env)
	shared, ok := b.byKey[key]
	if !ok {
		shared = &sourceBuild{request: build.Request{Name: p.Name, Dir: dir, Command: p.Build.Command, Env: env}}
		b.byKey[key] = shared
		b.all = append(b.all, shared)
	}
	shared.request.Name = alsoNamed(shared.request.Name, p.Name)
	for _, pattern := range p.Build.Watch {
		if !slices.Contains(shared.patterns, pattern) {
			shared.patterns = append(shared.patterns, pattern)
		}
	}
	return shared, nil
}

// alsoNamed adds a name to names, once.
func alsoNamed(names, name string) string {
	if slices.ContainsFunc(strings.Split(names, ", "), func(n string) bool { return strings.EqualFold(n, name) }) {
		return names
	}
	return names + ", " + name
}

// buildOnce runs all builds, one after the other, before anything is contacted.
func (a *app) buildOnce(ctx context.Context, s *session, builds *sourceBuilds) error {
	if len(builds.all) == 0 {
		return usagef("--build: no provisioner says how it is built; add build: with dir and command to it")
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	r := s.story.Node("")
	defer ui.Done(r)
	for _, b := range builds.all {
		if a.global.dryRun {
			r.Info("would build %s: %s", b.request.Name, b.request.Command)
			continue
		}
		r.Step("building %s", b.request.Name)
		begun := time.Now()
		if err := build.Run(ctx, b.request); err != nil {
			ui.Done(r)
			a.showOutput(s, err)
			return explain(ctx, err)
		}
		r.Info("built %s in %s", b.request.Name, ui.Seconds(time.Since(begun)))
	}
	return nil
}

// showOutput shows what a failed build printed, as it did: it ran on this machine, and
// compilers colour what they print.
func (a *app) showOutput(s *session, err error) {
	var failed *build.FailedError
	if !errors.As(err, &failed) || strings.TrimSpace(failed.Output) == "" {
		return
	}
	if a.global.logs == "json" {
		return // the event has it
	}
	s.story.Suspend(func() { fmt.Fprintln(ui.Raw(a.streams.Err), strings.TrimRight(failed.Output, "\n")) })
}
