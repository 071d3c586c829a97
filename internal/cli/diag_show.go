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
		return ui.Print(a.streams.Out, a.global.output, bundle.Manifest, func(w io.Writer) error {
			return showBundle(&visible{w: w}, bundle.Manifest)
		})
	}
	n, err := bundle.Node(args[1])
	if err != nil {
		return err
	}
	if len(args) == 2 {
		return ui.Print(a.streams.Out, a.global.output, n, func(w io.Writer) error { return showNode(&visible{w: w}, n) })
	}
	if a.global.output == ui.Text {
		return bundle.Table(n, args[2], &visible{w: a.streams.Out})
	}
	document, err := bundle.Document(n, args[2])
	if err != nil {
		return err
	}
	return ui.Print(a.streams.Out, a.global.output, document, nil)
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

// visible keeps what a bundle says from moving the terminal's cursor: it may come
// from anybody.
type visible struct {
	w    io.Writer
	last byte
}

func (v *visible) Write(data []byte) (int, error) {
	const twoBytes = 0xc2 // begins U+0080 to U+00BF, of which a half are controls too
	clean := make([]byte, len(data))
	for i, c := range data {
		switch {
		case c < ' ' && c != '\n' && c != '\t', c == 0x7f:
			clean[i] = ' '
		case v.last == twoBytes && c >= 0x80 && c < 0xa0:
			clean[i] = 0xa0 // a space
		default:
			clean[i] = c
		}
		v.last = c
	}
	if _, err := v.w.Write(clean); err != nil {
		return 0, err
	}
	return len(data), nil
}
