package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/proof/readiness"
)

func (a *app) readinessCommand() *cobra.Command {
	cmd := group("readiness", "Prove what a cluster with Windows nodes can do", a.readinessListCommand(), a.readinessRunCommand(),
		a.readinessReportCommand())
	cmd.Long = `Proves what a cluster with Windows nodes can do. Each case is one thing that such a
cluster must be able to do. A case is proved by specs of Kubernetes' own end-to-end
tests (e2e.test), or by a probe of swdt. The cases include those of the
operational-readiness specification of 2024 ("classic"), with their faults.`
	cmd.Example = examples(
		"readiness list", "all cases",
		"readiness list --category storage -o wide", "with the classic test cases and their faults",
		"readiness run --skip specs", "swdt's own probes, in a minute",
		"readiness run", "all that the cluster can prove",
		"readiness report readiness-20261123-180000", "a finished run",
	)
	return cmd
}

// choiceFlags are the flags that choose readiness cases.
type choiceFlags struct{ readiness.Choice }

func (o *choiceFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Categories, "category", nil, "only cases of these `categories`, several times or with commas")
	flags.StringSliceVar(&o.IDs, "case", nil, "only these `cases`, several times or with commas")
	flags.StringSliceVar(&o.Skip, "skip", nil, "leave out these `words`: categories, cases, what cases need, specs or probes")
	flags.BoolVar(&o.Classic, "classic", false, "only the cases of the operational-readiness specification")
	must(cmd.RegisterFlagCompletionFunc("category", cobra.FixedCompletions(readiness.Categories(),
		cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("case", completeCases))
	must(cmd.RegisterFlagCompletionFunc("skip", completeSkip))
}

// choose returns the cases that the flags choose.
func (o *choiceFlags) choose() ([]readiness.Case, error) {
	all, err := readiness.Cases()
	if err != nil {
		return nil, err
	}
	chosen, err := o.Choose(all)
	var (
		unknown *readiness.UnknownError
		nothing *readiness.NothingError
	)
	if errors.As(err, &unknown) {
		if similar := closest(unknown.Word, unknown.Known); similar != "" {
			return nil, usagef("there is no %s %q; did you mean %s?", unknown.Kind, unknown.Word, similar)
		}
		return nil, usagef("%v", err)
	}
	if errors.As(err, &nothing) {
		return nil, usagef("%v", err)
	}
	return chosen, err
}

func completeCases(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, err := readiness.Cases()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var ids []string
	for _, c := range all {
		ids = append(ids, c.ID+"\t"+c.Proves)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func completeSkip(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	ids, directive := completeCases(cmd, args, toComplete)
	words := append(readiness.Categories(), readiness.Needs()...)
	return append(append(words, readiness.BySpecs, readiness.ByProbes), ids...), directive
}

func (a *app) readinessListCommand() *cobra.Command {
	o := &choiceFlags{}
	cmd := &cobra.Command{
		Use:        "list [flags]",
		Short:      "List the readiness cases",
		SuggestFor: []string{"cases", "ls", "show"},
		Long: `Lists the cases: how each is proved, what the cluster needs for it, and what it
proves. -o wide adds the classic test case that the case stands for, and its fault.
-o json has the selections of specs too. No cluster is contacted.`,
		Example: examples(
			"readiness list", "",
			"readiness list --category network,policy --skip internet", "",
			"readiness list --classic -o wide", "what the specification of 2024 really tests",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			chosen, err := o.choose()
			if err != nil {
				return err
			}
			list := readiness.List{Cases: chosen}
			return a.print(list, list.WriteText)
		},
	}
	o.addFlags(cmd)
	return cmd
}
