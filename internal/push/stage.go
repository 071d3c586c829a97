package push

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// stageTries is the number of times that swdt tries to send a binary if the connection
// breaks. Each try continues where the last one stopped.
const stageTries = 4

// staging has the components of a push and the files that were sent for them. A transaction
// exchanges these files; if no transaction begins, unstage removes them.
type staging struct {
	components []*staged
	companions []*agentv1.SwapComponent
	handedOver bool // the transaction may have begun, so the files belong to it
}

// staged is a component whose new file is on the node.
type staged struct {
	*difference
	path   string // the path of the new file; empty: the binary at the destination stays
	sha256 string // the hash of the new file
}

// plan returns the transaction.
func (s *staging) plan(holder string) *agentv1.SwapPlan {
	plan := &agentv1.SwapPlan{Holder: holder}
	for _, c := range s.components {
		if c.change.changes() {
			plan.Components = append(plan.Components, c.swap())
		}
	}
	plan.Components = append(plan.Components, s.companions...)
	return plan
}

// stage sends every new binary to the folder of its destination, while the services run. With an
// error, it returns the files that it has staged so far.
func (w *work) stage(ctx context.Context, all differences) (*staging, error) {
	files := &staging{}
	for _, d := range all {
		c := &staged{difference: d}
		files.components = append(files.components, c)
		if !d.change.swaps() {
			continue
		}
		c.path, c.sha256 = layout.Staged(d.spec.Destination, d.binary.SHA256), d.binary.SHA256
		if err := d.fail(w.send(ctx, c)); err != nil {
			return files, err
		}
	}
	if err := w.checkStagedVersions(ctx, files); err != nil {
		return files, err
	}
	return files, w.stageCompanions(ctx, files)
}

func (w *work) send(ctx context.Context, c *staged) error {
	w.clearLeftovers(ctx, c.seen, c.path)
	w.reporter.Step("sending %s", c.spec.Name)
	total := transfer.Result{}
	for try := 1; ; try++ {
		file := w.file(c.difference)
		file.Absent = try == 1 && !c.hasLeftover()
		result, err := transfer.Send(ctx, w.node, file, c.path, w.reporter)
		total = total.And(result)
		c.result.Transfer, c.result.Seconds.Transfer = &total, total.Seconds
		if err == nil || !lost(err) || ctx.Err() != nil || try == stageTries {
			return sendError(err, c.spec.Destination)
		}
		w.reporter.Warn("lost the connection while sending %s; reconnecting to continue", c.spec.Name)
		if err := w.connectAgain(ctx); err != nil {
			return err
		}
	}
}

// file returns the component's binary, with the files on the node that are likely to be similar to
// the binary.
func (w *work) file(d *difference) transfer.File {
	file := fileOf(d.spec.Name, d.binary, w.options.Depot)
	if d.state.GetExists() {
		file.Bases = append(file.Bases, transfer.Base{
			Path: d.spec.Destination, SHA256: d.state.GetSha256(), Size: d.state.GetSize(),
		})
	}
	if previous := d.state.GetPreviousSha256(); previous != "" {
		file.Bases = append(file.Bases, transfer.Base{Path: layout.Previous(d.spec.Destination), SHA256: previous})
	}
	return file
}

func fileOf(name string, binary source.Binary, depot *transfer.Depot) transfer.File {
	return transfer.File{Binary: binary, Label: name, SDDL: access.SafeFile, Depot: depot}
}

// Prepare computes, ahead of time, the patch that the next push of a component will send.
// last is the result of the last push, and binary is the component's new binary. If the node
// has another binary by the time of the next push, the patch is not used.
func Prepare(ctx context.Context, n *node.Node, last NodeResult, name string, binary source.Binary,
	depot *transfer.Depot) error {
	i := slices.IndexFunc(last.Components, func(c *ComponentResult) bool { return c.Name == name })
	if i < 0 || last.Components[i].SHA256 == "" {
		return nil
	}
	file := fileOf(name, binary, depot)
	file.Bases = []transfer.Base{{SHA256: last.Components[i].SHA256}}
	return transfer.Prepare(ctx, n, file)
}

// hasLeftover reports whether an earlier push left a part of the same binary.
func (c *staged) hasLeftover() bool {
	return slices.ContainsFunc(c.state.GetLeftovers(), func(path string) bool { return isStaged(path, c.path) })
}

// isStaged reports whether path is the staged file, or the part that an interrupted transfer of the
// staged file left.
func isStaged(path, staged string) bool {
	return samePath(path, staged) || samePath(path, transfer.Part(staged))
}

// keep copies the binaries that the node has, or will have after the push, to your machine's store.
// A later push then sends only the difference between such a copy and the new build. The copying
// runs during the transaction; the returned function waits until the copying has ended. The copies
// are an optimisation: a failure to make them does not fail the push.
func (w *work) keep(ctx context.Context, all differences) (wait func()) {
	if w.options.Depot == nil {
		return func() {}
	}
	var copies sync.WaitGroup
	for _, d := range all {
		if d.change == changeSkipped {
			continue
		}
		copies.Go(func() {
			if err := w.options.Depot.Keep(ctx, w.file(d)); err != nil {
				w.reporter.Debug("%s: %v", d.spec.Name, err)
			}
		})
	}
	return copies.Wait
}

func sendError(err error, destination string) error {
	switch {
	case errors.Is(err, fault.ErrDiskFull):
		return fmt.Errorf("%w: free some space on the node's disk", err)
	case errors.Is(err, fault.ErrReadOnly), errors.Is(err, fault.ErrPermission):
		return fmt.Errorf("%w: the destination must be on a disk that administrators may write to", err)
	case errors.Is(err, fault.ErrBlocked):
		return fmt.Errorf("%w; %s", err, fault.BlockedRemedy(destination))
	}
	return err
}

// tidy removes the files that interrupted pushes left. It runs if there is nothing to push.
func (w *work) tidy(ctx context.Context, all differences) error {
	for _, d := range all {
		if len(d.state.GetLeftovers()) == 0 {
			continue
		}
		if err := w.lock(ctx); err != nil {
			return err
		}
		w.clearLeftovers(ctx, d.seen, "")
	}
	return nil
}

// clearLeftovers removes the files that interrupted pushes left beside the destination. It keeps
// the staged file of the present push (wanted), and the part of that file. A failure does not
// matter: the push does not depend on the removal.
func (w *work) clearLeftovers(ctx context.Context, c seen, wanted string) {
	for _, path := range c.state.GetLeftovers() {
		if isStaged(path, wanted) {
			continue
		}
		w.reporter.Debug("removing %s, which an interrupted push left", path)
		if _, err := w.node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path}); err != nil {
			w.reporter.Debug("remove %s: %v", path, err)
		}
	}
}

// unstage removes the staged files after the push has failed with the error why, unless they belong
// to a transaction. It takes at most farewell, since the user may have pressed Ctrl-C. After a lost
// connection, it removes nothing, and the next push uses the files.
func (w *work) unstage(ctx context.Context, files *staging, why error) {
	if why == nil || files.handedOver || lost(why) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	for _, c := range files.components {
		if c.path == "" {
			continue
		}
		for _, path := range []string{c.path, transfer.Part(c.path)} {
			_, err := w.node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path})
			if err != nil && !errors.Is(err, fault.ErrNotExist) {
				w.reporter.Warn("could not remove %s on the node; the next push removes it: %v", path, err)
			}
		}
	}
	w.unstageCompanions(ctx, files)
}

// lost reports whether the connection broke, so that a new one may help.
func lost(err error) bool {
	var gone *node.LostError
	return errors.As(err, &gone)
}
