package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/capture"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) captureFetchCommand() *cobra.Command {
	o := &captureOptions{}
	cmd := forNodes(&cobra.Command{
		Use:   "fetch [ID] -w FILE [flags]",
		Short: "Fetch the packets of a capture that was cut off",
		Long: `Writes packets that are still on the node as pcapng: those of a capture whose
connection broke, or whose file could not be written here. Without ID it is the newest
capture of each node. A node keeps such packets for an hour, and until the next
capture begins. It captures nothing.`,
		Example: examples(
			"capture fetch -n win-1 -w web.pcapng", "the newest one",
			"capture fetch 20261122-140312-5d1f9a02 -n win-1 -w web.pcapng", "as the message said",
		),
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) > 0 {
				id = args[0]
			}
			return a.runCaptureFetch(cmd.Context(), o, id)
		},
	})
	cmd.Flags().StringVarP(&o.file, "write", "w", "", "`file` to write packets to as pcapng")
	must(cmd.MarkFlagFilename("write"))
	return cmd
}

func (a *app) runCaptureFetch(ctx context.Context, o *captureOptions, id string) (err error) {
	switch {
	case a.global.dryRun:
		return usagef("capture fetch has no --dry-run: it changes nothing but removes from the node what it has fetched")
	case o.file == "" || o.file == stdoutFile:
		return usagef("name the file to write with -w")
	}
	if err := checkOutFile("-w", o.file); err != nil {
		return err
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	staging, err := capture.Stage(o.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, staging.Remove()) }()
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (nodeCapture, error) {
		folder, err := nodeFolder(staging.Path, doc)
		if err != nil {
			return nodeCapture{}, err
		}
		return fetchLeft(ctx, n, doc, id, folder, r)
	})
	return a.writeStaged(o, staging, results)
}

// fetchLeft fetches what an earlier capture left on a node.
func fetchLeft(ctx context.Context, n *node.Node, doc config.Document, id, folder string, r ui.Reporter) (c nodeCapture, err error) {
	left, err := capture.FindLeft(ctx, n, id)
	if err != nil {
		return c, err
	}
	result, release, err := left.Hold(ctx, n)
	if err != nil {
		return c, err
	}
	defer release()
	c.result, c.part.Node = result, doc.Node.Metadata.Name
	c.part.Names = namesAt(ctx, n, doc, r)
	return c, c.fetch(ctx, n, folder, r)
}

// target is the file that a capture ends up in; empty: none.
func (o *captureOptions) target() string {
	if o.onStdout {
		return ""
	}
	return o.file
}

// fetchLater says how to come by packets that are still on the node.
func fetchLater(node, id string) string {
	return fmt.Sprintf("the packets stay on the node for an hour, and until the next capture: swdt capture fetch %s -n %s -w FILE", id, node)
}

// writeStaged writes the captures. If that fails, what was fetched is kept: it is no
// longer on the nodes.
func (a *app) writeStaged(o *captureOptions, staging *localfile.Staging, results []fleet.Result[nodeCapture]) error {
	err := a.writeCaptures(o, results)
	var unwritten *unwrittenError
	if !errors.As(err, &unwritten) {
		return err
	}
	kept := o.file + ".parts"
	if failed := staging.Keep(kept); failed != nil {
		return errors.Join(err, fmt.Errorf("keep what was fetched: %w", failed))
	}
	return fmt.Errorf("%w\nwhat was fetched is in %s, as pcapng files of each node", err, kept)
}

// unwrittenError is a file of packets that could not be written.
type unwrittenError struct{ err error }

func (e *unwrittenError) Error() string { return "write the capture: " + e.err.Error() }
func (e *unwrittenError) Unwrap() error { return e.err }
