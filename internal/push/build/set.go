package build

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Shared is one build command and the sources that it reads. Several provisioners, of one
// or more nodes, may share it.
type Shared struct {
	Request  Request
	Patterns []string // the patterns of the sources, as in v1alpha1.Build
}

// Set has the builds of all node files. Provisioners with the same build have the same Shared.
type Set struct {
	All   []*Shared
	byKey map[string]*Shared
}

// NewSet collects the builds of the named components, or of all components if no name is given.
func NewSet(documents []config.Document, only []string) (*Set, error) {
	builds := &Set{byKey: map[string]*Shared{}}
	for _, document := range documents {
		for _, p := range document.Node.Spec.Kubernetes.Provisioners {
			if p.Build == nil || !Selected(p.Name, only) {
				continue
			}
			if _, err := builds.Add(document, p); err != nil {
				return nil, err
			}
		}
	}
	return builds, nil
}

// Selected reports whether a list of names selects a component: the list has the component's name,
// or is empty.
func Selected(name string, only []string) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(o string) bool { return strings.EqualFold(o, name) })
}

// Add returns the build of a provisioner. Provisioners with the same build get the same Shared.
func (s *Set) Add(document config.Document, p v1alpha1.Provisioner) (*Shared, error) {
	dir, err := filepath.Abs(document.Resolve(p.Build.Dir))
	if err != nil {
		return nil, fmt.Errorf("find the folder of %s's build: %w", p.Name, err)
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(p.Build.Env)) {
		env = append(env, name+"="+document.Expand(p.Build.Env[name]))
	}
	key := fmt.Sprintf("%q %q %q %q", dir, p.Build.Command.Shell, p.Build.Command.Args, env)
	shared, ok := s.byKey[key]
	if !ok {
		shared = &Shared{Request: Request{Name: p.Name, Dir: dir, Command: p.Build.Command, Env: env}}
		s.byKey[key] = shared
		s.All = append(s.All, shared)
	}
	shared.Request.Name = alsoNamed(shared.Request.Name, p.Name)
	for _, pattern := range p.Build.Watch {
		if !slices.Contains(shared.Patterns, pattern) {
			shared.Patterns = append(shared.Patterns, pattern)
		}
	}
	return shared, nil
}

// alsoNamed adds a name to a comma-separated list of names, unless the list already contains that
// name.
func alsoNamed(names, name string) string {
	if slices.ContainsFunc(strings.Split(names, ", "), func(n string) bool { return strings.EqualFold(n, name) }) {
		return names
	}
	return names + ", " + name
}

// Run runs all builds, one after the other; in a dry run it only reports them. The
// error is a *FailedError if a build failed.
func (s *Set) Run(ctx context.Context, dryRun bool, r ui.Reporter) error {
	defer ui.Done(r)
	for _, b := range s.All {
		if dryRun {
			r.Info("would build %s: %s", b.Request.Name, b.Request.Command)
			continue
		}
		r.Step("building %s", b.Request.Name)
		begun := time.Now()
		if err := Run(ctx, b.Request); err != nil {
			return err
		}
		r.Info("built %s in %s", b.Request.Name, ui.Seconds(time.Since(begun)))
	}
	return nil
}
