package join

import (
	"context"
	"slices"
	"time"

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
	own := preflight.Own{Joined: r.Joined || r.Joining, SourceVIP: r.SourceVIP != nil}
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

// RootCertificate is a root certificate that the join has added to the machine's store.
type RootCertificate struct {
	Name     string    `json:"name"`
	NotAfter time.Time `json:"notAfter"`
	// Trusted reports whether it still is in the store.
	Trusted bool `json:"trusted"`
}

// RootCertificates compares the root certificates that the record lists with the machine's store.
func RootCertificates(ctx context.Context, n *node.Node) (all []RootCertificate, err error) {
	r, err := load(ctx, n)
	if err != nil || len(r.Roots) == 0 {
		return nil, err
	}
	trusted, err := trustedRoots(ctx, n)
	if err != nil {
		return nil, err
	}
	for _, root := range r.Roots {
		all = append(all, RootCertificate{root.Name, root.NotAfter, slices.Contains(trusted, root.SHA256)})
	}
	return all, nil
}
