package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join/bake"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/agentbin/buildinfo"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

// bakeOptions are the flags of vm image bake.
type bakeOptions struct {
	bake.Options
	yes bool
}

func (a *app) vmImageBakeCommand() *cobra.Command {
	o := &bakeOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:        "bake --out FILE [flags]",
		Short:      "Build a disk image with everything a Windows node needs",
		SuggestFor: []string{"build", "make", "create", "export"},
		Long: `Makes a disk image from which any number of nodes can be made. It starts a
temporary VM over spec.machine.image.disk of the node file, applies spec.setup,
installs containerd, kubelet and kubeadm as a join does before it joins, pushes
spec.kubernetes.provisioners, and pulls container images. Then it removes what
belongs to one machine or is secret, generalises Windows with sysprep, and writes
the disk as qcow2 or VHDX, and beside it FILE.manifest.json, which lists what is
in the image with versions and hashes.

The image has no SSH keys, no certificates and tokens of a cluster, no passwords
of an unattended installation, no logs, and nothing of swdt. A machine made from
it has no password and no key until the answer file of its first start sets them.

Nothing joins a cluster. If a step fails, or at Ctrl-C, swdt removes the
temporary VM and the unfinished image, unless --keep is set. The base image is
only read.`,
		Example: examples(
			"vm image bake --out node.qcow2", "",
			"vm image bake --out node.vhdx --pull mcr.microsoft.com/windows/nanoserver:ltsc2022", "",
			"vm image bake --out node.qcow2 --unattend capi.xml", "an answer file for the machines' first start",
			"vm image bake --out node.qcow2 --dry-run", "the steps",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runImageBake(cmd.Context(), o) },
	}))
	flags := cmd.Flags()
	flags.StringVarP(&o.File, "out", "w", "", "image to write, NAME.qcow2 or NAME.vhdx (`file`)")
	flags.StringArrayVar(&o.Images, "pull", nil, "also pull this container `image`; repeat the flag for more")
	flags.BoolVar(&o.NoPull, "no-pull", false, "pull no image, not even that of pod sandboxes")
	flags.StringVar(&o.Unattend, "unattend", "",
		"answer `file` for sysprep and the first start; it stays in the image")
	flags.BoolVar(&o.KeepAuthorizedKeys, "keep-authorized-keys", false,
		"leave the keys that may log in by SSH in the image")
	flags.BoolVar(&o.KeepHostKeys, "keep-host-keys", false,
		"leave the SSH server's keys in the image: all machines made from it then have the same keys")
	flags.BoolVar(&o.KeepVM, "keep", false, "keep the temporary VM if a step fails")
	flags.StringVar(&o.Mirror, "mirror", "", "`URL or folder` that everything is downloaded from instead")
	addYesFlag(cmd, &o.yes)
	must(errors.Join(cmd.MarkFlagFilename("out", "qcow2", "vhdx"), cmd.MarkFlagFilename("unattend", "xml"),
		cmd.MarkFlagDirname("mirror")))
	return cmd
}

// oldBakeCommand returns the command under its former name, image bake, which it keeps for one release: hidden, and with a
// warning.
func (a *app) oldBakeCommand() *cobra.Command {
	cmd := a.vmImageBakeCommand()
	cmd.Hidden = true
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.former = append(a.former, "swdt image bake is called swdt vm image bake now; this release is the last that takes image bake")
		a.warnOfOldSpellings()
		return run(cmd, args)
	}
	return cmd
}

func (a *app) runImageBake(ctx context.Context, o *bakeOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	document, err := a.bakeDocument()
	if err != nil {
		return err
	}
	s, err := a.sessionFor([]config.Document{document})
	if err != nil {
		return err
	}
	if o.Machines, err = a.machines(); err != nil {
		return err
	}
	if err := a.confirmReplacing(ctx, o, s); err != nil {
		return err
	}
	o.DryRun = a.global.dryRun
	o.Connect = func(ctx context.Context, doc config.Document, r ui.Reporter) (*node.Node, error) {
		return s.connect(ctx, doc, r)
	}
	o.Artifacts, o.Sources = artifact.NewStore(artifact.Options{}), source.NewSet(source.Options{})
	o.Depot, o.Holder = s.depot(), plan.Holder("vm image bake")
	o.Swdt = buildinfo.New(a.env.Version, a.env.Commit, agentbin.Agent{}).Version
	return a.bake(ctx, document, o, s)
}

func (o *bakeOptions) check() error {
	switch {
	case o.File == "":
		return usagef("--out is missing: name the image to write, such as --out node.qcow2")
	case o.NoPull && len(o.Images) > 0:
		return usagef("--pull and --no-pull exclude each other: leave one of them out")
	}
	if err := artifact.CheckMirror(o.Mirror); err != nil {
		return usagef("--mirror %s: %v", o.Mirror, err)
	}
	return nil
}

// bakeDocument returns the only node file.
func (a *app) bakeDocument() (config.Document, error) {
	documents, err := a.vmDocuments()
	if err != nil {
		return config.Document{}, err
	}
	if len(documents) > 1 {
		return config.Document{}, usagef("an image is made of one node, and there are %d: choose it with --node", len(documents))
	}
	return documents[0], nil
}

// confirmReplacing asks before an existing image is replaced.
func (a *app) confirmReplacing(ctx context.Context, o *bakeOptions, s *session) error {
	if _, err := os.Lstat(o.File); err != nil || a.global.dryRun && !o.yes {
		o.Replace = o.yes
		return nil // bake.Run checks again whether the image exists
	}
	err := confirm(ctx, a.prompter(s.story), o.yes, "Replace "+o.File+" and its manifest?")
	o.Replace = err == nil
	return err
}

func (a *app) bake(ctx context.Context, document config.Document, o *bakeOptions, s *session) error {
	defer interrupt.AllowTime(ctx, cleanUpLimit)()
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	name := document.Node.Metadata.Name
	r := s.reporter(document)
	report, err := bake.Run(ctx, document, o.Options, r)
	ui.Done(r)
	s.story.End()
	var refused *bake.OptionError
	var exists *bake.ExistsError
	if errors.As(err, &refused) || errors.As(err, &exists) {
		return usagef("%s", a.remedies(name, err.Error()))
	}
	err = a.remedied(name, explain(ctx, err))
	if err != nil && len(report.Steps) == 0 {
		return err
	}
	report.Outcome = fleet.NewOutcome(name, fleet.Changed, err)
	return errors.Join(a.print(report, report.WriteText), err)
}
