package swap

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// Begin checks the plan against the machine, writes the journal and starts the
// guardian. When it returns an error nothing was stopped or renamed, and the
// staged files are still there.
//
// The caller holds the node's lock, so there is one Begin at a time.
func Begin(ctx context.Context, m Machine, plan Plan) (id string, err error) {
	plan.setDefaults()
	if err := plan.validate(); err != nil {
		return "", err
	}
	if err := nothingUnfinished(m.Host.Files); err != nil {
		return "", err
	}
	hashes := m.hashes()
	id = newID()
	for _, c := range plan.Components {
		if err := checkFiles(ctx, m.Host.Files, hashes, c, id); err != nil {
			return "", fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	// For the guardian, which has files of many megabytes to look at again while
	// somebody waits. Without it, it reads them.
	_ = hashes.Save()
	facts, err := m.Host.Machine.Facts(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for the boot id: %w", err)
	}
	first := record{State: Prepared, Plan: &plan, Boot: facts.BootID, Message: "by " + plan.Holder}
	if err := createJournal(m.Host.Files, id, first); err != nil {
		return "", err
	}
	// From here on the transaction is the guardian's. A connection that breaks
	// now must not make us take back the journal of one that is already at work.
	if err := startGuardian(context.WithoutCancel(ctx), m, id); err != nil {
		// Without a journal the guardian, should it start all the same, has
		// nothing to do.
		return "", errors.Join(err, m.Host.Files.Remove(journalPath(id)))
	}
	return id, nil
}

func newID() string {
	var random [4]byte
	rand.Read(random[:])
	return time.Now().UTC().Format("20060102-150405") + "-" + hex.EncodeToString(random[:])
}

func (p Plan) validate() error {
	if len(p.Components) == 0 {
		return errors.New("the plan has no component")
	}
	destinations := map[string]bool{}
	for _, c := range p.Components {
		key := strings.ToLower(strings.ReplaceAll(c.Destination, "/", `\`))
		switch {
		case c.Name == "" || c.Destination == "":
			return errors.New("the plan has a component without a name or a destination")
		case destinations[key]:
			return fmt.Errorf("%s: two components have the destination %s", c.Name, c.Destination)
		case c.swaps() && c.SHA256 == "":
			return fmt.Errorf("%s: the staged file's hash is missing", c.Name)
		case !c.swaps() && c.Service == "":
			return fmt.Errorf("%s: there is nothing to swap and no service to restart", c.Name)
		}
		destinations[key] = true
	}
	return nil
}

func nothingUnfinished(files host.Files) error {
	transactions, err := Transactions(files)
	if err != nil {
		return err
	}
	for _, t := range transactions {
		if t.Outcome == nil {
			return fmt.Errorf("%w: %s by %s, %s", ErrBusy, t.ID, t.Holder, t.State)
		}
	}
	return nil
}

// checkFiles makes sure that the staged file is the one meant, and that the
// destination is still what the plan was made for.
func checkFiles(ctx context.Context, files host.Files, hashes *hashcache.Cache, c Component, id string) error {
	if !c.swaps() {
		return nil
	}
	if err := ownStaged(files, c, id); err != nil {
		return err
	}
	staged, _, err := hashes.Hash(ctx, c.Staged)
	if err != nil {
		return fmt.Errorf("check the staged file: %w", err)
	}
	if staged != c.SHA256 {
		return fmt.Errorf("the staged file %s has the hash %.12s, not %.12s: push again", c.Staged, staged, c.SHA256)
	}
	current, err := hashOrNothing(ctx, hashes, c.Destination)
	if err != nil {
		return fmt.Errorf("check the destination: %w", err)
	}
	if current != c.PreviousSHA256 {
		return fmt.Errorf("%w: %s", ErrChanged, c.Destination)
	}
	// With no transaction unfinished, an undo file beside a live binary is not one
	// of swdt's, or was left because its program still ran.
	if err := setAside(files, c.undo(), layout.Aside(c.Destination, id+"-undo")); err != nil {
		return fmt.Errorf("clear away an older undo file: %w", err)
	}
	return nil
}

func hashOrNothing(ctx context.Context, hashes *hashcache.Cache, path string) (string, error) {
	sum, _, err := hashes.Hash(ctx, path)
	if errors.Is(err, host.ErrNotExist) {
		return "", nil
	}
	return sum, err
}
