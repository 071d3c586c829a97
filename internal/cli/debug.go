package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/node/transfer/patchfile"
	"github.com/swdt-dev/swdt/internal/wire/delta"
)

// debugCommand is hidden: it is for developers of swdt and for benchmarks.
func (a *app) debugCommand() *cobra.Command {
	cmd := group("debug", "Look at the parts that swdt is made of", a.debugDiffCommand(), a.debugPatchCommand())
	cmd.Hidden = true
	return cmd
}

func (a *app) printDelta(r patchfile.Result) error {
	return a.print(r, r.WriteText)
}

type debugDiffOptions struct {
	variant string
	workers int
	out     string
	verify  bool
}

func (a *app) debugDiffCommand() *cobra.Command {
	o := &debugDiffOptions{}
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Make a patch of two files and print its cost",
		Args:  arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := a.global.bounded(cmd.Context())
			defer cancel()
			return explain(ctx, a.runDebugDiff(ctx, o, args[0], args[1]))
		},
	}
	cmd.Flags().StringVar(&o.variant, "variant", "fast", "how to make it: fast or small")
	cmd.Flags().IntVar(&o.workers, "workers", 0, "`number` of processors to use (default all)")
	cmd.Flags().StringVarP(&o.out, "out", "w", "", "`file` to write the patch to")
	cmd.Flags().BoolVar(&o.verify, "verify", true, "apply the patch too, and see that it gives the new file")
	return cmd
}

func (o *debugDiffOptions) deltaOptions() (delta.Options, error) {
	if o.workers < 0 {
		return delta.Options{}, usagef("--workers %d: use 1 or more", o.workers)
	}
	switch o.variant {
	case "fast":
		return delta.Options{Variant: delta.Fast, Workers: o.workers}, nil
	case "small":
		return delta.Options{Variant: delta.Small, Workers: o.workers}, nil
	}
	return delta.Options{}, usagef("--variant %s: use fast or small", o.variant)
}

func (a *app) debugPatchCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "patch OLD PATCH --out NEW",
		Short: "Apply a patch and print its cost",
		Args:  arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := a.global.bounded(cmd.Context())
			defer cancel()
			return explain(ctx, a.runDebugPatch(ctx, args[0], args[1], out))
		},
	}
	cmd.Flags().StringVarP(&out, "out", "w", "", "`file` to write")
	must(cmd.MarkFlagRequired("out"))
	return cmd
}

func (a *app) runDebugDiff(ctx context.Context, o *debugDiffOptions, oldPath, newPath string) error {
	options, err := o.deltaOptions()
	if err != nil {
		return err
	}
	result, err := patchfile.Diff(ctx, oldPath, newPath, patchfile.Options{Delta: options, Out: o.out,
		Verify: o.verify})
	if err != nil {
		return err
	}
	return a.printDelta(result)
}

func (a *app) runDebugPatch(ctx context.Context, oldPath, patchPath, out string) error {
	result, err := patchfile.Apply(ctx, oldPath, patchPath, out)
	if err != nil {
		return err
	}
	return a.printDelta(result)
}
