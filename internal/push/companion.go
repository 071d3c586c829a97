package push

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Companion is a small file, such as the configuration that a new binary needs. The
// transaction replaces the file together with the binaries, while their services are stopped.
// If the transaction restores the binaries, it restores the file too.
type Companion struct {
	Destination string
	// Before is the file's present content. If the content has changed when the transaction is
	// about to begin, the transaction does not begin.
	Before []byte
	After  []byte
}

// swap returns the companion's part of the transaction.
func (c Companion) swap() *agentv1.SwapComponent {
	sum := sumOf(c.After)
	return &agentv1.SwapComponent{
		Name:        c.Destination[strings.LastIndex(c.Destination, `\`)+1:],
		Destination: c.Destination,
		Staged:      layout.Staged(c.Destination, sum), Sha256: sum, PreviousSha256: sumOf(c.Before),
	}
}

// reversed returns the parts of a transaction that puts companions back. The node keeps the file that a transaction has
// replaced, and that file takes the place of a staged one.
func reversed(companions []*agentv1.SwapComponent) []*agentv1.SwapComponent {
	var back []*agentv1.SwapComponent
	for _, c := range companions {
		back = append(back, &agentv1.SwapComponent{Name: c.GetName(), Destination: c.GetDestination(),
			Staged: layout.Previous(c.GetDestination()), Sha256: c.GetPreviousSha256(), PreviousSha256: c.GetSha256()})
	}
	return back
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// stageCompanions asks the caller for the files that belong to the staged binaries, and
// writes each one beside its destination.
func (w *work) stageCompanions(ctx context.Context, files *staging) error {
	if w.options.Companions == nil {
		return nil
	}
	paths := map[string]string{}
	for _, c := range files.components {
		if c.change == changeBinary {
			paths[c.spec.Name] = c.path
		}
	}
	companions, err := w.options.Companions(ctx, paths)
	if err != nil {
		return err
	}
	for _, c := range companions {
		part := c.swap()
		// The part is recorded before Replace, so that a half-written file is removed too.
		files.companions = append(files.companions, part)
		if err := smallfile.Replace(ctx, w.node, part.GetStaged(), c.After, smallfile.Administrators); err != nil {
			return err
		}
	}
	return nil
}

// unstageCompanions removes the companions of a transaction that did not begin.
func (w *work) unstageCompanions(ctx context.Context, files *staging) {
	for _, c := range files.companions {
		if err := smallfile.Remove(ctx, w.node, c.GetStaged()); err != nil {
			w.reporter.Warn("could not remove a file that was staged on the node: %v", err)
		}
	}
}
