package trace

import (
	"context"

	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/smallfile"
	"github.com/swdt-dev/swdt/internal/trace/record"
)

// tidy removes what an interrupted command left beside a configuration file, and
// what a transaction keeps for a rollback: what is to come back is kept elsewhere.
// A file that somebody else wrote stays, for whoever misses it.
func tidy(ctx context.Context, n *node.Node, entry record.Service) error {
	if entry.Config == nil {
		return nil
	}
	path := entry.Config.Path
	ours := sums(entry)
	for sum := range ours {
		if err := smallfile.Remove(ctx, n, layout.Staged(path, sum)); err != nil {
			return err
		}
	}
	previous := layout.Previous(path)
	content, there, err := readFile(ctx, n, previous)
	if err != nil || !there || !ours[record.Sum(content, true)] {
		return err
	}
	return smallfile.Remove(ctx, n, previous)
}

// sums are of all that the trace itself has put in the configuration's place.
func sums(entry record.Service) map[string]bool {
	all := map[string]bool{record.Sum([]byte(newConfig), true): true}
	for e := &entry; e != nil && e.Config != nil; e = e.Earlier {
		for _, sum := range []string{e.Config.Before, e.Config.After} {
			if sum != "" {
				all[sum] = true
			}
		}
	}
	return all
}
