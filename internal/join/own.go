package join

import (
	"context"

	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node"
)

// Own returns the things that swdt itself has put on the machine, according to its record
// there, so that package preflight does not report them as remains of other programs.
func Own(ctx context.Context, n *node.Node) (preflight.Own, error) {
	r, err := load(ctx, n)
	if err != nil {
		return preflight.Own{}, err
	}
	own := preflight.Own{Joined: r.Joined || r.Joining}
	far, _, err := howFar(ctx, n)
	if err != nil {
		return preflight.Own{}, err
	}
	if far == joined || far == unfinished {
		if own.Authorities, err = authorities(ctx, n); err != nil {
			return preflight.Own{}, err
		}
	}
	for _, f := range r.Files {
		own.Files = append(own.Files, f.Path)
	}
	for _, s := range r.Services {
		own.Services = append(own.Services, s.Name)
	}
	return own, nil
}
