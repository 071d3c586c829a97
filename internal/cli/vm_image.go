package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
	"github.com/swdt-dev/swdt/internal/vm/golden"
	"github.com/swdt-dev/swdt/internal/vm/media"
)

func (a *app) vmImageCommand() *cobra.Command {
	cmd := group("image", "Install Windows from an ISO into golden images, and bake nodes into disks",
		a.vmImageInspectCommand(), a.vmImageBuildCommand(), a.vmImageListCommand(), a.vmImageRemoveCommand(), a.vmImageBakeCommand())
	cmd.Long = `A golden image is a disk with an installed Windows, made once from your ISO. The
disks of VMs are laid over it, so that a VM is made in a second. The key of an
image is the hash of everything that went into it: the ISO, the edition,
drivers, OpenSSH, the settings. The images are below ~/.cache/swdt/images.

vm image bake makes a file instead, with everything that a node needs, for
Cluster API, image-builder and "swdt vm create".`
	cmd.Example = examples(
		"vm image inspect SERVER_EVAL_x64FRE_en-us.iso", "what to write into the node file",
		"vm image build", "install it, unattended",
		"vm image list", "",
		"vm image bake --out windows-node.qcow2", "a disk with containerd, kubelet and images",
	)
	return cmd
}

// images returns the golden images of this user.
func (a *app) images() (*golden.Images, error) {
	machines, err := a.machines()
	if err != nil {
		return nil, err
	}
	return golden.Open("", machines)
}

// accelerator is the value of --accel, which replaces spec.machine.accelerator of node files.
type accelerator string

func (o *accelerator) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(o), "accel", "", "use this accelerator: auto, kvm, hvf, whpx, or tcg, which "+
		"emulates and installs for many hours (default: the node file's)")
	must(cmd.RegisterFlagCompletionFunc("accel",
		cobra.FixedCompletions(accelerators(), cobra.ShellCompDirectiveNoFileComp)))
}

func accelerators() []string { return []string{"auto", "kvm", "hvf", "whpx", "tcg"} }

// replace returns the documents with the accelerator, if one is set.
func (o accelerator) replace(documents []config.Document) ([]config.Document, error) {
	if o == "" {
		return documents, nil
	}
	if !slices.Contains(accelerators(), string(o)) {
		return nil, usagef("--accel %s: use %s", string(o), ui.Alternatives(accelerators()))
	}
	documents = slices.Clone(documents)
	for i := range documents {
		machine := *documents[i].Node.Spec.Machine
		machine.Accelerator = string(o)
		documents[i].Node.Spec.Machine = &machine
	}
	return documents, nil
}

func (a *app) vmImageBuildCommand() *cobra.Command {
	var accel accelerator
	var limits []string
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:        "build [flags]",
		Short:      "Install Windows from an ISO, unattended",
		SuggestFor: []string{"create", "install", "make"},
		Long: `Installs Windows from the ISO that spec.machine.image of the node file names, in a
VM of its own, and keeps its disk as a golden image. It asks nothing: a CD with
the answers, the drivers, OpenSSH and a script is made for it and wiped at the
end. Windows is generalised, so that each VM of the image is a machine of its own.

An image that exists is left as it is. If the installation fails, the error names
the reason and the remedy, and the last screen is saved. A build that was killed
is discarded by the next one.

Without hardware acceleration an installation takes many hours, and is refused
unless --accel tcg is set. swdt's tests install an imitation of Windows: no real
one was installed yet.`,
		Example: examples(
			"vm image build", "",
			"vm image build --dry-run", "what would be installed, and QEMU's command line",
			"vm image build -c windows-1.yaml --accel tcg", "without hardware acceleration",
			"vm image build --limit copy=3h", "on a machine with a slow disk",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := golden.Options{}
			if err := setLimits(&o, limits); err != nil {
				return err
			}
			return a.runVMImageBuild(cmd.Context(), accel, o)
		},
	}))
	accel.addFlag(cmd)
	addLimitFlag(cmd, &limits)
	return cmd
}

// oneBuild is how many installations run at a time: each takes the whole machine.
const oneBuild = 1

func (a *app) runVMImageBuild(ctx context.Context, accel accelerator, o golden.Options) error {
	documents, err := a.vmDocuments()
	if err != nil {
		return err
	}
	if documents, err = accel.replace(documents); err != nil {
		return err
	}
	images, err := a.images()
	if err != nil {
		return err
	}
	images.Bound(o)
	if a.global.dryRun {
		plans := golden.Plans{}
		plans.Builds, err = onImages(ctx, a, documents, images.Plan)
		return errors.Join(a.print(plans, func(p *ui.Page) error { return plans.WriteText(p, a.shell().Join) }), err)
	}
	reports := golden.Reports{}
	reports.Builds, err = onImages(ctx, a, documents, images.Build)
	return errors.Join(a.print(reports, func(p *ui.Page) error { return reports.WriteText(p) }), err)
}

// onImages does the work on the image of every node file, and returns the results.
func onImages[T golden.Result[T]](
	ctx context.Context, a *app, documents []config.Document,
	work func(context.Context, config.Document, ui.Reporter) (T, error),
) ([]T, error) {
	defer interrupt.AllowTime(ctx, cleanUpLimit)()
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	story := a.newStory()
	results := fleet.Run(ctx, documents, oneBuild, func(ctx context.Context, d config.Document) (T, error) {
		r := story.Node(a.vmLabel(documents, d))
		defer ui.Done(r)
		done, err := work(ctx, d, r)
		return done, a.remedied(d.Node.Metadata.Name, explain(ctx, err))
	})
	story.End()
	all := []T{}
	for _, result := range results {
		all = append(all, result.Value.Of(result.Name(), result.Err))
	}
	return all, fleet.Failures(results)
}

func (a *app) vmImageListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List golden images and the VMs that use them",
		Long: `Lists your golden images: the Windows that each has, how large it is on this
machine, and the VMs whose disks are laid over it. It also lists what interrupted
and failed builds have left.`,
		Example: examples("vm image list", "", "vm image list -o name", "for scripts"),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			images, err := a.images()
			if err != nil {
				return err
			}
			list, err := images.List(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(list, func(p *ui.Page) error { return list.WriteText(p) })
		},
	}
}

func (a *app) vmImageRemoveCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use: "remove KEY…", Short: "Remove golden images that no VM uses",
		SuggestFor: []string{"rm", "delete", "prune"},
		Long: `Removes golden images, and what interrupted or failed builds of them have left. An
image that the disk of a VM is laid over is refused. Asks first, unless --yes is
set.`,
		Example:           examples("vm image remove 3f2a9c01b4d5e6f7", "", "vm image remove 3f2a9c01b4d5e6f7 --yes", ""),
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeImages,
		RunE: func(cmd *cobra.Command, keys []string) error {
			return a.runVMImageRemove(cmd.Context(), keys, yes)
		},
	}
	addYesFlag(cmd, &yes)
	return cmd
}

func (a *app) runVMImageRemove(ctx context.Context, keys []string, yes bool) error {
	story := a.newStory()
	prompt := a.prompter(story)
	if err := canConfirm(prompt, yes, "Remove golden images?"); err != nil {
		return err
	}
	images, err := a.images()
	if err != nil {
		return err
	}
	keys = slices.Clone(keys)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, key := range keys {
		if err := images.Removable(key); err != nil {
			return err
		}
	}
	if err := confirm(ctx, prompt, yes, "Remove the golden images "+strings.Join(keys, ", ")+"?"); err != nil {
		return err
	}
	defer interrupt.AllowTime(ctx, cleanUpLimit)()
	r := story.Node("")
	removed := golden.Removed{Images: []string{}}
	for _, key := range keys {
		if err = images.Remove(ctx, key, r); err != nil {
			break
		}
		removed.Images = append(removed.Images, key)
	}
	story.End()
	return errors.Join(a.print(removed, func(p *ui.Page) error { return removed.WriteText(p) }), explain(ctx, err))
}

// completeImages completes the keys of golden images.
func (a *app) completeImages(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	images, err := a.images()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	other := func(key string) bool { return !strings.HasPrefix(key, toComplete) || slices.Contains(args, key) }
	return slices.DeleteFunc(images.Keys(), other), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) vmImageInspectCommand() *cobra.Command {
	hash := false
	cmd := &cobra.Command{
		Use: "inspect FILE.iso", Short: "Show what an ISO of Windows or of virtio-win holds",
		Long: `Shows the editions of a Windows ISO, or the drivers of a virtio-win ISO, and the
lines of a node file that use it. It only reads the file. With --hash it compares
the SHA-256 with those of Microsoft's evaluation media, which takes a minute.`,
		Example: examples(
			"vm image inspect SERVER_EVAL_x64FRE_en-us.iso", "",
			"vm image inspect virtio-win.iso -o json", "",
		),
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: completeFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.inspectISO(cmd.Context(), args[0], hash)
		},
	}
	cmd.Flags().BoolVar(&hash, "hash", false, "compute the SHA-256, too")
	return cmd
}

func (a *app) inspectISO(ctx context.Context, path string, hash bool) error {
	file, info, err := localfile.OpenRegular(path)
	switch {
	case errors.Is(err, localfile.ErrNotRegular):
		return usagef("%v; name an ISO", err)
	case err != nil:
		return usagef("%v", err)
	}
	defer file.Close()
	report := media.Report{File: path}
	if report.Media, err = media.Inspect(file, info.Size()); err != nil {
		return fmt.Errorf("inspect %s: %w", path, err)
	}
	if hash {
		ctx, cancel := a.global.bounded(ctx)
		defer cancel()
		story := a.newStory()
		progress := story.Node("").Transfer("hashing "+path, info.Size())
		report.Sum, err = media.Hash(ctx, file, info.Size(), progress)
		progress.End()
		story.End()
		if err != nil {
			return explain(ctx, fmt.Errorf("hash %s: %w", path, err))
		}
	}
	return a.print(report, report.WriteText)
}
