package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// rowOptions are the flags of a table of which people sort and choose rows.
type rowOptions struct {
	sort   string
	filter string
}

// column is something that rows are sorted by: numbers the most first, names in
// natural order. Without compare it is the order in which they are listed.
type column[R any] struct {
	name    string
	compare func(a, b R) int
}

func columnNames[R any](columns []column[R]) (all []string) {
	for _, c := range columns {
		all = append(all, c.name)
	}
	return all
}

// addFlags adds --sort by these columns, the first of which is the default, and
// --filter by text in these fields.
func (o *rowOptions) addFlags(cmd *cobra.Command, fields string, columns []string) {
	cmd.Flags().StringVar(&o.sort, "sort", columns[0], "sort the table by this `column`: "+inWords(columns))
	cmd.Flags().StringVar(&o.filter, "filter", "", "only what has this `text` in its "+fields)
	must(cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(columns, cobra.ShellCompDirectiveNoFileComp)))
}

// complete refuses a column that the table does not have.
func (o *rowOptions) complete(columns []string) error {
	if slices.Contains(columns, o.sort) {
		return nil
	}
	if similar := closest(o.sort, columns); similar != "" {
		return usagef("--sort %s: the columns are %s; did you mean %s?", o.sort, inWords(columns), similar)
	}
	return usagef("--sort %s: use %s", o.sort, inWords(columns))
}

// matches reports whether one of the texts has the filter's, in any case of letters.
func (o *rowOptions) matches(texts ...string) bool {
	wanted := strings.ToLower(o.filter)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), wanted) })
}

// sortRows sorts rows by the column of that name; equal rows keep their order.
func sortRows[R any](rows []R, columns []column[R], name string) {
	i := slices.IndexFunc(columns, func(c column[R]) bool { return c.name == name })
	if i >= 0 && columns[i].compare != nil {
		slices.SortStableFunc(rows, columns[i].compare)
	}
}
