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

// stage sends every binary that differs to the folder of its destination, while the services
// run.
func (w *work) stage(ctx context.Context) error {
	for _, c := range w.components {
		if c.change != changeBinary && c.change != changeCreate {
			continue
		}
		if err := c.fail(w.stageOne(ctx, c)); err != nil {
			return err
		}
	}
	return w.checkStagedVersions(ctx)
}

func (w *work) stageOne(ctx context.Context, c *component) error {
	c.staged, c.sha256 = layout.Staged(c.spec.Destination, c.binary.SHA256), c.binary.SHA256
	w.clearLeftovers(ctx, c)
	w.reporter.Step("sending %s", c.spec.Name)
	total := transfer.Result{}
	for try := 1; ; try++ {
		file := w.file(c)
		file.Absent = try == 1 && !c.hasLeftover()
		result, err := transfer.Send(ctx, w.node, file, c.staged, w.reporter)
		total = total.And(result)
		c.result.Transfer, c.result.Seconds.Transfer = &total, total.Seconds
		if err == nil || !lost(err) || ctx.Err() != nil || try == stageTries {
			return sendError(err)
		}
		w.reporter.Warn("lost the connection while sending %s; reconnecting to continue", c.spec.Name)
		if err := w.connectAgain(ctx); err != nil {
			return err
		}
	}
}

// file returns the component's binary, and the files on the node that are likely to
// be similar to it.
func (w *work) file(c *component) transfer.File {
	file := fileOf(c.spec.Name, c.binary, w.options.Depot)
	if c.state.GetExists() {
		file.Bases = append(file.Bases, transfer.Base{
			Path: c.spec.Destination, SHA256: c.state.GetSha256(), Size: c.state.GetSize(),
		})
	}
	if c.state.GetPreviousPath() != "" {
		file.Bases = append(file.Bases, transfer.Base{Path: c.state.GetPreviousPath(), SHA256: c.state.GetPreviousSha256()})
	}
	return file
}

func fileOf(name string, binary source.Binary, depot *transfer.Depot) transfer.File {
	return transfer.File{
		Label: name, SDDL: access.SafeFile, Path: binary.Path, Size: binary.Size, SHA256: binary.SHA256, Modified: binary.Modified, Depot: depot,
	}
}

// Prepare computes, ahead of time, the patch that the next push of a component will send.
// last is the result of the last push, and binary is the component's new binary. If the node
// has another binary by the time of the next push, the patch is not used.
func Prepare(ctx context.Context, n *node.Node, last NodeResult, name string, binary source.Binary, depot *transfer.Depot) error {
	i := slices.IndexFunc(last.Components, func(c *ComponentResult) bool { return c.Name == name })
	if i < 0 || last.Components[i].SHA256 == "" {
		return nil
	}
	file := fileOf(name, binary, depot)
	file.Bases = []transfer.Base{{SHA256: last.Components[i].SHA256}}
	return transfer.Prepare(ctx, n, file)
}

// hasLeftover reports whether an earlier push left a part of the same binary.
func (c *component) hasLeftover() bool {
	return slices.ContainsFunc(c.state.GetLeftovers(), func(path string) bool {
		return samePath(path, c.staged) || samePath(path, transfer.Part(c.staged))
	})
}

// noteStanding records which binaries the work left on the node, so that the next push can
// begin to work before the node has answered.
func (w *work) noteStanding(err error) {
	if w.options.Depot == nil || w.options.DryRun {
		return
	}
	for _, c := range w.components {
		stands := c.result.SHA256
		if err != nil {
			stands = c.state.GetSha256()
		}
		if stands != "" {
			w.options.Depot.RecordInstalled(c.spec.Name, stands)
		}
	}
}

// keep keeps copies of the binaries that are on the node, or soon will be, so that the next
// build can be compared with them. The copying runs beside the transaction, and wait waits
// for it. The copies are an optimisation: a failure to make them does not fail the push.
func (w *work) keep(ctx context.Context) (wait func()) {
	if w.options.Depot == nil {
		return func() {}
	}
	var copies sync.WaitGroup
	for _, c := range w.components {
		if c.change == changeSkipped {
			continue
		}
		copies.Go(func() {
			if err := w.options.Depot.Keep(ctx, w.file(c)); err != nil {
				w.reporter.Debug("%s: %v", c.spec.Name, err)
			}
		})
	}
	return copies.Wait
}

func sendError(err error) error {
	switch {
	case errors.Is(err, fault.ErrDiskFull):
		return fmt.Errorf("%w: free some space on the node's disk", err)
	case errors.Is(err, fault.ErrReadOnly), errors.Is(err, fault.ErrPermission):
		return fmt.Errorf("%w: the destination must be on a disk that administrators may write to", err)
	}
	return err
}

// tidy removes the files that interrupted pushes left. It runs if there is nothing to push.
func (w *work) tidy(ctx context.Context) error {
	for _, c := range w.components {
		if len(c.state.GetLeftovers()) == 0 || w.options.DryRun {
			continue
		}
		if err := w.lock(ctx); err != nil {
			return err
		}
		w.clearLeftovers(ctx, c)
	}
	return nil
}

// clearLeftovers removes the files of other builds that interrupted pushes left beside the
// destination. A failure does not matter: the push does not depend on it.
func (w *work) clearLeftovers(ctx context.Context, c *component) {
	for _, path := range c.state.GetLeftovers() {
		if samePath(path, c.staged) || samePath(path, transfer.Part(c.staged)) {
			continue
		}
		w.reporter.Debug("removing %s, which an interrupted push left", path)
		if _, err := w.node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path}); err != nil {
			w.reporter.Debug("remove %s: %v", path, err)
		}
	}
}

// checkStagedVersions asks the new binaries for their version before anything is
// stopped, if a wrong version is an error.
func (w *work) checkStagedVersions(ctx context.Context) error {
	if !w.options.Strict {
		return nil
	}
	var asked []*component
	request := &agentv1.InspectRequest{}
	for _, c := range w.components {
		if c.staged == "" || c.spec.Version == "" {
			continue
		}
		asked = append(asked, c)
		request.Components = append(request.Components, &agentv1.InspectComponent{
			Name: c.spec.Name, Destination: c.staged, VersionArgs: c.versionArgs(),
		})
	}
	if len(asked) == 0 {
		return nil
	}
	reply, err := w.node.Swap.Inspect(ctx, request)
	if err != nil {
		return fmt.Errorf("ask the new binaries for their version: %w", err)
	}
	for i, c := range asked {
		c.result.Version.After = reply.GetComponents()[i].GetVersion()
		if err := c.fail(w.checkVersion(c)); err != nil {
			return err
		}
	}
	return nil
}

// unstage removes the files that were staged for a transaction that did not begin, and takes
// at most farewell, since the user may have pressed Ctrl-C. After a lost connection nothing
// can be removed; the next push then uses the parts.
func (w *work) unstage(ctx context.Context, why error) {
	if lost(why) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	for _, c := range w.components {
		if c.staged == "" || c.keepStaged() {
			continue
		}
		for _, path := range []string{c.staged, transfer.Part(c.staged)} {
			_, err := w.node.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path})
			if err != nil && !errors.Is(err, fault.ErrNotExist) {
				w.reporter.Warn("could not remove %s on the node, the next push will: %v", path, err)
			}
		}
	}
	w.unstageCompanions(ctx)
}

// keepStaged reports whether the staged file is the kept previous binary.
func (c *component) keepStaged() bool { return samePath(c.staged, layout.Previous(c.spec.Destination)) }

// lost reports whether the connection broke, so that a new one may help.
func lost(err error) bool {
	var gone *node.LostError
	return errors.As(err, &gone)
}
