package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/order"
	"github.com/swdt-dev/swdt/internal/ui/result"
)

const sortByFlag = "sort-by"

// nodeColumn is the first column of a table of several nodes.
const nodeColumn = "NODE"

// addSortBy gives --sort-by to each command that declares the columns of its table.
func (a *app) addSortBy(cmd *cobra.Command) {
	if declared, _ := outputOf(cmd); declared.columns != nil {
		cmd.Flags().StringVar(&a.global.sortBy, sortByFlag, "", "sort rows by this `column`, such as "+declared.columns(false)[0]+
			", or with -o json by a JSONPath, such as {.name}; -COLUMN: the largest first")
		must(cmd.RegisterFlagCompletionFunc(sortByFlag, a.completeColumns))
	}
	for _, child := range cmd.Commands() {
		a.addSortBy(child)
	}
}

// completeColumns completes the columns of the table that the command prints.
func (a *app) completeColumns(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	declared, _ := outputOf(cmd)
	var found []string
	prefix := ""
	if strings.HasPrefix(typed, "-") {
		prefix = "-"
	}
	for _, column := range declared.columns(a.global.output == result.Wide) {
		if name := prefix + column; len(name) >= len(typed) && strings.EqualFold(name[:len(typed)], typed) {
			found = append(found, name)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// chooseOrder checks --sort-by against the command's declaration before the command runs. chooseFormat came before.
func (a *app) chooseOrder(cmd *cobra.Command) error {
	if a.global.sortBy == "" {
		return nil
	}
	declared, chosen := a.printer.declared, order.Parse(a.global.sortBy)
	own := declared.columns(a.format() == result.Wide)
	columns, known := own, strings.Join(own, ", ")
	if !declared.oneTable {
		columns = append([]string{nodeColumn}, own...)
	}
	switch {
	case a.inText() && chosen.Path != "":
		return usagef("--%s %s: a JSONPath sorts the rows of -o json, yaml and of templates; the columns of the table are %s",
			sortByFlag, a.global.sortBy, known)
	case a.inText() && order.Find(columns, chosen.Column) >= 0:
		a.printer.order = chosen
		return nil
	case a.inText():
		return a.noColumn(cmd, chosen.Column, known, columns)
	case chosen.Path == "":
		return usagef("--%s %s: -o %s has no columns; write a JSONPath of a row, such as {.name}", sortByFlag, a.global.sortBy,
			a.format())
	}
	sorter, err := result.NewSorter(chosen, declared.document)
	if err != nil {
		return usagef("--%s %s: %v", sortByFlag, a.global.sortBy, err)
	}
	a.printer.Sorter = sorter
	return nil
}

// noColumn returns the error about a column that the table does not have.
func (a *app) noColumn(cmd *cobra.Command, column, known string, columns []string) error {
	wide := a.printer.declared.columns(true)
	if order.Find(wide, column) >= 0 {
		return usagef("--%s %s: only -o wide has this column; without it the columns are %s", sortByFlag, column, known)
	}
	if similar := closest(strings.ToUpper(column), slices.Concat(columns, wide)); similar != "" {
		return usagef("--%s %s: the columns are %s; did you mean %s?", sortByFlag, column, known, similar)
	}
	return usagef("--%s %s: the columns of %s are %s", sortByFlag, column, cmd.CommandPath(), known)
}

// asWrongColumn returns a usage error for the error of a table that does not have the column, as that of one node has
// no column NODE, and every other error as it is.
func asWrongColumn(err error) error {
	if unknown, ok := errors.AsType[*ui.UnknownColumnError](err); ok {
		return usagef("--%s %s: %v", sortByFlag, unknown.Column, unknown)
	}
	return err
}
