package join

import (
	"context"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/preflight"
)

// Own is what swdt itself has put on the machine, by the record it keeps there:
// for preflight, to which that is no leftover of somebody else.
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
