package swap

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Begin checks the plan against the machine, writes the journal and starts the
// guardian. If it returns an error, it has stopped no service and changed no
// binary at a destination, and the staged files still exist.
//
// The caller holds the node's lock, so there is one Begin at a time.
func Begin(ctx context.Context, m Machine, plan Plan) (id string, err error) {
	plan.setDefaults()
	if err := plan.validate(); err != nil {
		return "", err
	}
	if err := nothingUnfinished(m.Platform.Files); err != nil {
		return "", err
	}
	hashes := m.hashes()
	id = newID()
	for _, c := range plan.Components {
		if err := checkFiles(ctx, m.Platform.Files, hashes, c, id); err != nil {
			return "", fmt.Errorf("%s: %w", c.Name, withRemedy(err, c.Destination))
		}
	}
	// Save the hashes for the guardian, which must verify files of many
	// megabytes while the user waits. Without the saved hashes, it reads the
	// files.
	_ = hashes.Save()
	facts, err := m.Platform.Machine.Facts(ctx)
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	first := record{State: Prepared, Plan: &plan, Boot: facts.BootID, Message: "by " + plan.Holder}
	if err := createJournal(m.Platform.Files, id, first); err != nil {
		return "", err
	}
	// From here on the guardian owns the transaction. If the connection breaks
	// now, the journal of a working guardian must stay.
	if err := startGuardian(context.WithoutCancel(ctx), m, id); err != nil {
		// If the guardian starts after all, it finds no journal and does
		// nothing.
		return "", errors.Join(withRemedy(err, m.Executable), m.Platform.Files.Remove(journalPath(id)))
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

func nothingUnfinished(files platform.Files) error {
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

// checkFiles makes sure that the staged file is the expected one, and that the
// destination has not changed since the plan was made.
func checkFiles(ctx context.Context, files platform.Files, hashes *hashcache.Cache, c Component, id string) error {
	if !c.swaps() {
		return nil
	}
	if err := ownStaged(ctx, files, c, id); err != nil {
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
	// No transaction is unfinished. So an undo file beside a live binary is either not swdt's, or
	// was left because a program still ran it.
	if err := setAsidePatiently(ctx, patience.Patience{Files: files, Limit: patience.Long}, c.undo(),
		layout.Aside(c.Destination, id+"-undo")); err != nil {
		return fmt.Errorf("remove an older undo file: %w", err)
	}
	return nil
}

func hashOrNothing(ctx context.Context, hashes *hashcache.Cache, path string) (string, error) {
	sum, _, err := hashes.Hash(ctx, path)
	if errors.Is(err, fault.ErrNotExist) {
		return "", nil
	}
	return sum, err
}
