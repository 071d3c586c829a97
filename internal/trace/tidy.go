package trace

import (
	"context"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// tidy removes the files that an interrupted command staged beside a configuration file. It also
// removes the copy that a transaction keeps for a rollback, since trace keeps its own copy
// elsewhere. It removes only files whose content the trace has recorded or written.
func tidy(ctx context.Context, n *node.Node, entry tracerecord.Service) error {
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
	if err != nil || !there || !ours[tracerecord.Sum(content, true)] {
		return err
	}
	return smallfile.Remove(ctx, n, previous)
}

// sums returns the hashes of all content that trace writes or restores at the path of the
// configuration file.
func sums(entry tracerecord.Service) map[string]bool {
	all := map[string]bool{tracerecord.Sum([]byte(newConfig), true): true}
	for e := &entry; e != nil && e.Config != nil; e = e.Earlier {
		for _, sum := range []string{e.Config.Before, e.Config.After} {
			if sum != "" {
				all[sum] = true
			}
		}
	}
	return all
}
