package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/inspect/stats/soak"
)

func (a *app) statsSoakCommand() *cobra.Command {
	failOn := ""
	cmd := &cobra.Command{
		Use:   "soak RECORDING [flags]",
		Short: "Find what slowly grows in a recording of hours",
		Long: `Fits a slope to each number of a recording of "stats watch --soak --record", and
to the memory of containers in any recording. The slope is the median of the
slopes between each two points (Theil and Sen), so outliers do not move it. BETWEEN
is where the slope is with 99.7 % confidence. Values before and after the restart of
a program are not compared with each other.

  growing   the whole interval is above 0, and a line fits better than one step:
            another pod alone is no slope
  falling   the same downwards
  steady    it changes by less than 1 % an hour
  unsure    the number moves too irregularly: record for a longer time
  tooFew    too few points: less than 50 minutes, or restarts in between

Without -o wide, the text has only what grows, falls or is unsure. The exit code is
5 with --fail-on growing if something grows, or free disk falls.`,
		Example: examples(
			"stats soak night.swdt", "",
			"stats soak night.swdt -o wide", "also what is steady",
			"stats soak night.swdt --fail-on growing", "for scripts",
		),
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return a.runStatsSoak(args[0], failOn) },
	}
	cmd.ValidArgsFunction = completeFiles
	cmd.Flags().StringVar(&failOn, "fail-on", "", "`growing`: exit code 5 if something grows, or free disk falls")
	must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{string(soak.Growing)},
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (a *app) runStatsSoak(path, failOn string) error {
	if failOn != "" && failOn != string(soak.Growing) {
		return usagef("--fail-on %s: use %s", failOn, soak.Growing)
	}
	found, err := soak.Load(path)
	if err != nil {
		return err
	}
	if err := a.print(found, found.WriteText); err != nil {
		return err
	}
	if failOn != "" && found.Grows() {
		return &exitError{code: exitFinding}
	}
	return nil
}

// writeSoak prints what grew at the end of a watch.
func (a *app) writeSoak(found soak.Report) error {
	p := a.page()
	_, err := fmt.Fprintln(p)
	return errors.Join(err, found.WriteText(p), p.Flush())
}
