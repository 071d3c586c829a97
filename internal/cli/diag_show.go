package cli

import (
	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/diag"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) diagShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show BUNDLE [NODE [TABLE]] [flags]",
		Short: "Show the content of a bundle",
		Long: `Shows the content of a bundle of swdt diag: its nodes, the data of one node, or
one table in the form in which swdt prints it live. No node is contacted and
nothing is unpacked.`,
		Example: examples(
			"diag show bundle.tar.gz", "the nodes",
			"diag show bundle.tar.gz win-1", "its data, and why data is missing",
			"diag show bundle.tar.gz win-1 pods", "a table",
			"diag show bundle.tar.gz win-1 events -o json", "the data behind a table",
		),
		Args: arguments(cobra.RangeArgs(1, 3)),
		RunE: func(_ *cobra.Command, args []string) error { return a.runDiagShow(args) },
	}
	cmd.ValidArgsFunction = completeFiles
	return cmd
}

func (a *app) runDiagShow(args []string) error {
	bundle, err := diag.Open(args[0])
	if err != nil {
		return err
	}
	if len(args) == 1 {
		return a.print(bundle.Manifest, bundle.Manifest.WriteText)
	}
	n, err := bundle.Node(args[1])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		report := diag.NodeReport{Nodes: []diag.NodeRecord{n}}
		return a.print(report, report.WriteText)
	}
	of := diag.NodeTable{Outcome: fleet.NewOutcome(n.Name, fleet.OK, nil), Table: args[2]}
	if !a.inText() {
		if of.Document, err = bundle.Document(n, args[2]); err != nil {
			return err
		}
	}
	return a.print(diag.TableReport{Nodes: []diag.NodeTable{of}},
		func(p *ui.Page) error { return bundle.Table(n, args[2], p) })
}
