// Package publish puts binaries into an OCI registry as a set (package binaryset), with a patch from
// the build that the registry had before. The same binaries after the same build result in the
// same digest.
//
//   - publish.go: the story
//   - plan.go: what the registry should have: layers and patches
//   - base.go: the sets that patches begin from
//   - upload.go: what the registry lacks
//   - report.go: what was published
package publish

import (
	"context"
	"fmt"
	"net/http"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// Component is a binary to publish.
type Component struct {
	Name        string
	Version     string // may be empty
	Destination string // where nodes have the file; a hint
	Title       string // the name of the file
	Binary      source.Binary
}

// Options say where to publish, and what to begin patches from.
type Options struct {
	Target distribution.Reference // a tag
	// Bases are tags of the target's repository whose binaries get a patch to the new ones. Default:
	// the target's own tag, if it exists.
	Bases      []string
	Credential auth.CredentialFunc
	HTTP       *http.Client // default: see distribution.Options
	// Blobs keeps the binaries, for the patches of the next time.
	Blobs  *blobs.Store
	DryRun bool // push nothing
}

// Publish publishes components as one set under a tag. It reads what the tag has now, makes the
// layers and patches, and sends what the registry lacks. The tag changes last, at once.
func Publish(ctx context.Context, components []Component, o Options, r ui.Reporter) (Report, error) {
	if o.Target.Tag == "" {
		return Report{}, &distribution.TargetError{Text: o.Target.Name(), Target: o.Target}
	}
	p, err := newPlan(ctx, components, o, r)
	if err != nil {
		return Report{}, fmt.Errorf("publish %s: %w", o.Target.Name(), err)
	}
	report := p.report()
	switch {
	case p.unchanged():
		report.Result = Unchanged
	case o.DryRun:
		report.Result = Planned
	default:
		if err := p.upload(ctx, &report); err != nil {
			return report, fmt.Errorf("publish %s: %w", o.Target.Name(), err)
		}
		report.Result = Published
	}
	if o.DryRun {
		return report, nil
	}
	for _, c := range components {
		if err := o.Blobs.Put(ctx, c.Binary.Path, c.Binary.SHA256); err != nil {
			r.Warn("%s is not kept for the next patch: %v", c.Title, err)
		}
	}
	return report, nil
}
