package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/diag"
	"github.com/swdt-dev/swdt/internal/finding"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) diagShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show BUNDLE [NODE [TABLE]] [flags]",
		Short: "What is in a bundle",
		Long: `Shows what a bundle of swdt diag has: of all nodes, what was gathered of one, or
one of its tables as the command that shows it live prints it. No node is contacted
and nothing is unpacked.`,
		Example: examples(
			"diag show bundle.tar.gz", "the nodes",
			"diag show bundle.tar.gz win-1", "what was gathered, and why not what was not",
			"diag show bundle.tar.gz win-1 pods", "a table",
			"diag show bundle.tar.gz win-1 events -o json", "and what it was made of",
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
		return a.print(bundle.Manifest, func(p *ui.Page) error { return showBundle(p, bundle.Manifest) })
	}
	n, err := bundle.Node(args[1])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		return a.print(diagNode{[]diag.NodeRecord{n}}, func(p *ui.Page) error { return showNode(p, n) })
	}
	of := diagTableOf{frame: newFrame(n.Name, resultOK, nil), Table: args[2]}
	if !a.inText() {
		if of.Document, err = bundle.Document(n, args[2]); err != nil {
			return err
		}
	}
	return a.print(diagTable{[]diagTableOf{of}}, func(p *ui.Page) error { return bundle.Table(n, args[2], p) })
}

// diagNode is one node of a bundle.
type diagNode struct {
	Nodes []diag.NodeRecord `json:"nodes"`
}

// diagTable is one table of a node, as the command prints it that shows it live.
type diagTable struct {
	Nodes []diagTableOf `json:"nodes"`
}

type diagTableOf struct {
	frame
	Table    string `json:"table"`
	Document any    `json:"document"`
}

func showBundle(w io.Writer, m diag.Manifest) error {
	_, err := fmt.Fprintf(w, "profile %s, gathered %s by swdt %s\n\n", m.Profile, m.Created.UTC().Format(time.RFC3339), m.SWDT)
	if err != nil {
		return err
	}
	return writeDiagNodes(w, m)
}

func showNode(w io.Writer, n diag.NodeRecord) error {
	if n.Error != "" {
		if _, err := fmt.Fprintf(w, "%s: %s\n\n", n.Result, n.Error); err != nil {
			return err
		}
	}
	var rows [][]string
	for _, c := range n.Collectors {
		kept := ""
		if len(c.Files) > 0 {
			kept = finding.Several(len(c.Files), "file")
		}
		rows = append(rows, []string{c.Name, c.Result, strings.Join(c.Tables, ", "), kept, strings.ReplaceAll(c.Error, "\n", "; ")})
	}
	if err := ui.Table(w, []string{"COLLECTOR", "RESULT", "TABLES", "FILES", "MESSAGE"}, rows); err != nil || len(n.Findings) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	rows = nil
	for _, f := range n.Findings {
		rows = append(rows, []string{f.Severity, f.Title, f.Evidence, f.Remedy})
	}
	return ui.Table(w, []string{"SEVERITY", "FINDING", "SEEN", "REMEDY"}, rows)
}
