package cli

import (
	"context"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

// rowFlags are the flags of a table that users sort and filter.
type rowFlags struct{ livetable.Choice }

// addFlags adds --sort and --filter. --sort accepts the names in columns; the first one is
// the default. fields describes, for the help, the fields in which --filter searches.
func (o *rowFlags) addFlags(cmd *cobra.Command, fields string, columns []string) {
	cmd.Flags().StringVar(&o.Sort, "sort", columns[0], "sort the table by this `column`: "+ui.Alternatives(columns))
	cmd.Flags().StringVar(&o.Filter, "filter", "", "only rows with this `text` in "+fields)
	must(cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(columns, cobra.ShellCompDirectiveNoFileComp)))
}

// complete rejects a column that the table does not have.
func (o *rowFlags) complete(columns []string) error {
	if slices.Contains(columns, o.Sort) {
		return nil
	}
	if similar := closest(o.Sort, columns); similar != "" {
		return usagef("--sort %s: the columns are %s; did you mean %s?", o.Sort, ui.Alternatives(columns), similar)
	}
	return usagef("--sort %s: use %s", o.Sort, ui.Alternatives(columns))
}

// tableKeys returns the keys of a table on stdout, and a context that ends when the user types
// q. The keys are nil if no user can type them. The caller must call the keys' method End.
func (a *app) tableKeys(ctx context.Context, columns []string, sort string) (context.Context, *livetable.Keys) {
	terminal, ok := a.streams.In.(*os.File)
	if !ok || !a.inText() || a.global.readsStdin() || !isTerminal(terminal) || !a.canDraw(a.streams.Out) {
		return ctx, nil
	}
	return livetable.NewKeys(ctx, terminal, livetable.NewView(columns, sort), livetable.KeyOptions{
		Quit: &InterruptedError{Signal: "q"}, Begun: func() { a.keysWork.Store(true) },
	})
}
