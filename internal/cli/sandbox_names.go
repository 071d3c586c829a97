package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/ui"
)

// nameFrom takes the name of a sandbox from the argument.
func (o *sandboxOptions) nameFrom(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if o.Name != "" && o.Name != args[0] {
		return usagef("%s and --name %s are two names: use one", args[0], o.Name)
	}
	o.Name = args[0]
	return nil
}

// sandboxError turns a mistake on the command line into a usage error.
func sandboxError(ctx context.Context, err error) error {
	var asked *sandbox.RequestError
	if errors.As(err, &asked) {
		return usagef("%v", err)
	}
	return explain(ctx, err)
}

type sandboxDownOptions struct {
	sandboxOptions
	all bool
	yes bool
}

func (a *app) sandboxDownCommand() *cobra.Command {
	o := &sandboxDownOptions{}
	cmd := &cobra.Command{
		Use:        "down [NAME…]",
		Short:      "End sandboxes and remove their state",
		SuggestFor: []string{"stop", "delete", "rm", "remove", "destroy", "kill"},
		Long: `Ends sandboxes and removes their state: those named, else the one with the name
` + sandbox.DefaultName + `. With --all it ends all of them, and asks first unless --yes is set.`,
		Example: examples(
			"sandbox down", "",
			"sandbox down second third", "",
			"sandbox down --all", "",
		),
		ValidArgsFunction: notTwice(o.complete),
		RunE: func(cmd *cobra.Command, names []string) error {
			if o.all && (len(names) > 0 || o.Name != "") {
				return usagef("--all ends every sandbox: leave the names out")
			}
			return a.runSandboxDown(cmd.Context(), o, names)
		},
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.all, "all", false, "end every sandbox that runs")
	addYesFlag(cmd, &o.yes)
	return cmd
}

func (a *app) runSandboxDown(ctx context.Context, o *sandboxDownOptions, names []string) error {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	if o.Name != "" {
		names = append(names, o.Name)
	}
	if o.all {
		list, err := sandbox.Status(ctx, o.Options)
		if err != nil {
			return sandboxError(ctx, err)
		}
		names = sandboxNames(list)
		if len(names) > 0 {
			if err := confirm(ctx, a.prompter(a.newStory()),
				o.yes, "End "+strings.Join(names, ", ")+" and remove their state?"); err != nil {
				return err
			}
		}
	}
	if !o.all && len(names) == 0 {
		names = []string{sandbox.DefaultName}
	}
	ends, err := endSandboxes(ctx, o.Options, names)
	return errors.Join(err, a.print(ends, func(p *ui.Page) error { return ends.WriteText(p) }))
}

func sandboxNames(list []sandbox.Info) (names []string) {
	for _, info := range list {
		names = append(names, info.Name)
	}
	return names
}

// endSandboxes ends all named sandboxes and goes on after a failure.
func endSandboxes(ctx context.Context, o sandbox.Options, names []string) (ends sandbox.Ends, failed error) {
	for _, name := range names {
		o.Name = name
		err := sandbox.Down(ctx, o)
		if err != nil && !errors.Is(err, sandbox.ErrNotRunning) {
			failed = errors.Join(failed, sandboxError(ctx, err))
			continue
		}
		ends.Sandboxes = append(ends.Sandboxes, sandbox.End{Name: name, Ended: err == nil})
	}
	return ends, failed
}

func (a *app) sandboxStatusCommand() *cobra.Command {
	o := &sandboxOptions{}
	cmd := &cobra.Command{
		Use:               "status [NAME]",
		Aliases:           []string{"ls", "list"},
		Short:             "List running sandboxes",
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: o.complete,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := o.nameFrom(names); err != nil {
				return err
			}
			return a.runSandboxStatus(cmd.Context(), o)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (a *app) runSandboxStatus(ctx context.Context, o *sandboxOptions) error {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	list, err := sandbox.Status(ctx, o.Options)
	if err != nil {
		return sandboxError(ctx, err)
	}
	none := "no sandbox runs; `swdt sandbox up` starts one"
	if o.Name != "" {
		none = fmt.Sprintf("no sandbox %s runs; `swdt sandbox ls` lists those that do", o.Name)
	}
	result := sandbox.List{Sandboxes: list}
	return a.print(result, func(p *ui.Page) error { return result.WriteText(p, a.remedies("", none)) })
}

// complete completes the names of the running sandboxes.
func (o *sandboxOptions) complete(cmd *cobra.Command, _ []string, toComplete string) ([]string,
	cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), completionTimeout)
	defer cancel()
	all := o.Options
	all.Name = ""
	list, err := sandbox.Status(ctx, all)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := slices.DeleteFunc(sandboxNames(list),
		func(name string) bool { return !strings.HasPrefix(name, toComplete) })
	return names, cobra.ShellCompDirectiveNoFileComp
}
