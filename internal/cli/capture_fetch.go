package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/inspect/capture"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) captureFetchCommand() *cobra.Command {
	o := &captureOptions{}
	cmd := forNodes(&cobra.Command{
		Use:   "fetch [ID] -w FILE [flags]",
		Short: "Fetch the packets of a capture that was cut off",
		Long: `Writes packets that are still on the node as pcapng: those of a capture whose
connection broke, or whose file could not be written on your machine. Without ID
it fetches the newest capture of each node. A node keeps such packets for an
hour, or until the next capture begins. The command captures nothing.`,
		Example: examples(
			"capture fetch -n win-1 -w web.pcapng", "the newest capture",
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
	cmd.Flags().StringVarP(&o.file, "out", "w", "", "`file` to write packets to as pcapng")
	must(cmd.MarkFlagFilename("out"))
	return cmd
}

func (a *app) runCaptureFetch(ctx context.Context, o *captureOptions, id string) (err error) {
	switch {
	case a.global.dryRun:
		return usagef("capture fetch has no --dry-run: its only change is to remove the fetched packets from the node")
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
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (capture.NodeCapture, error) {
		return capture.FetchEarlier(ctx, n, doc, id, staging.Path, r)
	})
	return a.writeStaged(o, staging, results)
}

// target returns the file that a capture is written to, or "" if it is not written to a
// file.
func (o *captureOptions) target() string {
	if o.onStdout {
		return ""
	}
	return o.file
}
