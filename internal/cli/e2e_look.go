package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/trial"
	"github.com/swdt-dev/swdt/internal/proof/verdict"
)

func (a *app) e2eListCommand() *cobra.Command {
	o := &e2eOptions{}
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the specs that match",
		Long: `Lists the specs that match, by a dry run of e2e.test, and runs none. With --binary
or --checkout it contacts no cluster.`,
		Example: examples("e2e list --suite sig-windows", "",
			`e2e list --binary ./e2e.test --focus "\[sig-windows\].*GMSA" -o wide`, "with the files of the specs",
			`e2e list --label-filter "sig-network && Conformance" -o json`, ""),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runE2EList(cmd.Context(), o) },
	}
	o.addSelectionFlags(cmd)
	return cmd
}

func (a *app) runE2EList(ctx context.Context, o *e2eOptions) error {
	options, err := o.complete(a, time.Now())
	if err != nil {
		return err
	}
	var c *cluster.Cluster
	if options.Source.NeedsVersion() {
		if c, err = o.cluster.open(); err != nil {
			return err
		}
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	story := a.newStory()
	options.Reporter = story.Node("")
	plan, err := trial.List(ctx, c, options)
	story.End()
	if err != nil {
		return e2eFailure(explain(ctx, err))
	}
	return a.print(plan, plan.WriteText)
}

func (a *app) e2eCompareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compare BEFORE AFTER",
		Short: "Compare the results of two runs",
		Long: `Compares the results of two runs, such as before and after a push of a kubelet. The
arguments are folders of results, or JUnit files of Ginkgo, such as the junit_01.xml of
a CI job. A file of an interrupted run counts as far as it goes: specs that it did not
reach are notRun. The exit code is 5 if a spec that passed does not pass any more.`,
		Example: examples("e2e compare before after", "", "e2e compare before junit_01.xml", "with a run of CI", "e2e compare before after -o wide", "also what is the same"),
		Args:    arguments(cobra.ExactArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error {
			before, err := verdict.Load(args[0])
			if err != nil {
				return err
			}
			after, err := verdict.Load(args[1])
			if err != nil {
				return err
			}
			c := verdict.Compare(before, after)
			if err := a.print(c, c.WriteText); err != nil {
				return err
			}
			if c.Worse() {
				return &exitError{code: exitFinding}
			}
			return nil
		},
	}
}
