package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/agentbin/buildinfo"
	"github.com/swdt-dev/swdt/internal/proof/selftest"
	"github.com/swdt-dev/swdt/internal/ui"
)

// selftestOptions are the flags of selftest.
type selftestOptions struct {
	run  selftest.Options
	out  string
	list bool
}

func (a *app) selftestCommand() *cobra.Command {
	o := &selftestOptions{}
	cmd := forNodes(&cobra.Command{
		Use:   "selftest [flags]",
		Short: "Try on a real node what swdt promises",
		Long: `Tries on one node what swdt promises, from facts over files, services and pushes to
the event log, and prints which claims passed, which failed, and which are not
possible on that node. The report also has each answer that differs from those of
swdt's stand-ins for Windows: please contribute it, if your node is a real Windows.

Everything that the claims make has names of its own, and is removed at the end,
also after Ctrl-C; the next run removes what one that was killed has left. They
work on a service of their own, swdt-selftest, and leave the node's other services
alone. Claims that change settings of the node need --change-settings, and
those that restart it --allow-reboot.

The report has no names of machines and users, no addresses and no keys. --out FILE
writes it as JSON, and beside it FILE.html for people. The exit code is 0 if no claim
failed and at least one passed, and 5 if one failed.`,
		Example: examples(
			"selftest --list", "the claims, and what they do to the node",
			"selftest --out report.json", "writes report.json and report.html",
			"selftest --only files,push", "",
			"selftest --change-settings --allow-reboot", "all claims",
			"selftest compare report.json other.json", "two reports",
		),
		Args: selftestArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runSelftest(cmd.Context(), o) },
	})
	flags := cmd.Flags()
	flags.BoolVar(&o.list, "list", false, "list the claims, and contact nothing")
	flags.StringSliceVar(&o.run.Only, "only", nil, "try only these `claims`")
	flags.StringSliceVar(&o.run.Skip, "skip", nil, "leave out these `claims`")
	flags.BoolVar(&o.run.ChangeSettings, "change-settings", false, "also change settings of the node for a moment")
	flags.BoolVar(&o.run.AllowReboot, "allow-reboot", false, "also restart the node")
	flags.StringVar(&o.out, "out", "", "`file` for the report as JSON, and as a page beside it")
	must(cmd.MarkFlagFilename("out", "json"))
	for _, name := range []string{"only", "skip"} {
		must(cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(claimIDs(), cobra.ShellCompDirectiveNoFileComp)))
	}
	cmd.AddCommand(a.selftestCompareCommand())
	return cmd
}

// selftestArguments accepts no arguments. To files, it answers with the command that compares reports.
func selftestArguments(cmd *cobra.Command, args []string) error {
	if slices.ContainsFunc(args, func(arg string) bool { return filepath.Ext(arg) == ".json" }) {
		return usagef("%s runs on a node and takes no reports; `swdt selftest compare FIRST SECOND` compares two",
			cmd.CommandPath())
	}
	return arguments(cobra.NoArgs)(cmd, args)
}

func claimIDs() (all []string) {
	for _, c := range selftest.Claims() {
		all = append(all, c.ID)
	}
	return all
}

// complete checks the flags without contacting anything.
func (o *selftestOptions) complete(a *app) error {
	if err := o.run.Check(); err != nil {
		return usagef("%v", err)
	}
	if o.out == "" {
		return nil
	}
	if pageOf(o.out) == o.out {
		return usagef("--out %s: name the file for the report as JSON, such as report.json", o.out)
	}
	return errors.Join(checkOutFile("--out", o.out), checkOutFile("--out", pageOf(o.out)))
}

// pageOf returns the name of the page beside a report.
func pageOf(out string) string { return strings.TrimSuffix(out, filepath.Ext(out)) + ".html" }

func (a *app) runSelftest(ctx context.Context, o *selftestOptions) error {
	if o.list {
		list := selftest.NewList()
		return a.print(list, list.WriteText)
	}
	if err := o.complete(a); err != nil {
		return err
	}
	s, err := a.oneNode("a selftest is of one node")
	if err != nil {
		return err
	}
	s.quiet = false
	o.run.Swdt = buildinfo.New(a.env.Version, a.env.Commit, agentbin.Agent{}).Version
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, document config.Document, r ui.Reporter) (
		selftest.Report, error) {
		o.run.Agent = n.Agent()
		return selftest.Run(ctx, n, document, o.run, r)
	})
	report, failed := results[0].Value, results[0].Err
	if len(report.Claims) == 0 { // nothing was tried
		return failed
	}
	return errors.Join(a.print(report, report.WriteText), o.save(report), selftestFailure(failed))
}

// selftestFailure adds the exit code to the error of a run. The table already shows the failures.
func selftestFailure(err error) error {
	var failed *selftest.FailedError
	if errors.As(err, &failed) {
		return &exitError{code: exitFinding}
	}
	return err
}

// save writes the report and its page.
func (o *selftestOptions) save(report selftest.Report) error {
	if o.out == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	if err := localfile.Replace(o.out, append(text, '\n')); err != nil {
		return err
	}
	var page strings.Builder
	if err := report.WritePage(io.Writer(&page)); err != nil {
		return err
	}
	return localfile.Replace(pageOf(o.out), []byte(page.String()))
}

func (a *app) selftestCompareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compare FIRST SECOND",
		Short: "Compare the reports of two nodes",
		Long: `Prints the answers in which two reports of "selftest --out" differ. Claims that one of
them has not tried are left out. No node is contacted.`,
		Example: examples("selftest compare report.json other.json", ""),
		Args:    arguments(cobra.ExactArgs(2)),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(_ *cobra.Command, args []string) error {
			first, err := selftest.Load(args[0])
			if err != nil {
				return err
			}
			second, err := selftest.Load(args[1])
			if err != nil {
				return err
			}
			c := selftest.Compare(first, second)
			return a.print(c, c.WriteText)
		},
	}
}
