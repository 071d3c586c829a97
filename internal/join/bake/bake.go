// Package bake makes a disk image from which nodes are made. It prepares a temporary VM as
// `swdt setup` and `swdt join` prepare a machine, but joins no cluster. It removes everything from
// the VM that belongs to one machine or is secret, generalises Windows, and writes the disk and a
// manifest.
//
//   - bake.go: the run and its options
//   - check.go: the checks before anything is made
//   - machine.go: the temporary VM
//   - install.go: settings, programs and container images
//   - clean.go, traces.go: the removal of everything that must not be in an image
//   - generalize.go: sysprep
//   - target.go: the image's file, which appears complete or not at all
//   - manifest.go, report.go: the contents of the image; the result of the command
//
// # Trust
//
// The base image counts as hostile until its VM has shut down. Its guest is a node like any other,
// so its replies are checked. But some facts in the manifest are known only from this guest. The
// image's file is made in a folder that only you can access.
package bake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Options are the inputs of Run besides the node file.
type Options struct {
	// File is the image to write: NAME.qcow2 or NAME.vhdx. The manifest is beside it.
	File string
	// Replace allows Run to replace an existing file.
	Replace bool
	// Images are container images to pull, in addition to the image of pod sandboxes.
	Images []string
	// NoPull pulls no image at all, for a build without a registry.
	NoPull bool
	// KeepAuthorizedKeys and KeepHostKeys leave the SSH keys of the build in the image.
	KeepAuthorizedKeys, KeepHostKeys bool
	// Unattend is the path of an answer file for sysprep. The answer file stays in the image.
	// Empty: swdt uses its own answer file, which has no secrets.
	Unattend string
	// KeepVM leaves the temporary VM if the run fails.
	KeepVM bool
	// DryRun lists the steps, and makes nothing.
	DryRun bool

	Machines *vm.Machines
	// Connect connects to the node of a document.
	Connect func(ctx context.Context, doc config.Document, r ui.Reporter) (*node.Node, error)
	// Artifacts, Sources, Depot, Mirror and Holder are the same as in join.Options.
	Artifacts join.Artifacts
	Sources   *source.Set
	Depot     *transfer.Depot
	Mirror    string
	Holder    string
	// Swdt is the version of this swdt, for the manifest.
	Swdt string
}

// stage is a part of a run.
type stage struct {
	name, change string
	// run does the work of the stage. message describes the work; "" if the field change already
	// does.
	run func(ctx context.Context) (message string, err error)
}

// oven is the state of one run.
type oven struct {
	doc      config.Document // the node file of the temporary VM
	of       string          // the name of the node file's node
	options  Options
	reporter ui.Reporter
	base     baseImage
	target   *target
	made     bool // the temporary VM exists
	node     *node.Node
	manifest Manifest
}

// removeLimit bounds the removal of the temporary VM.
const removeLimit = time.Minute

// Run bakes the image of a node file. If it fails or is interrupted, it leaves no new image, and it
// removes the temporary VM unless o.KeepVM is set. It returns the report even if it fails. If a
// check before the first step fails, the report has no steps.
func Run(ctx context.Context, doc config.Document, o Options, r ui.Reporter) (Report, error) {
	b, err := newOven(ctx, doc, o, r)
	if err != nil {
		return newReport(doc, o), err
	}
	report := newReport(doc, o)
	stages := b.stages()
	for _, s := range stages {
		report.Steps = append(report.Steps, plan.StepResult{Name: s.name, Change: s.change, State: plan.Skipped})
	}
	if o.DryRun {
		return report, nil
	}
	err = b.bake(ctx, stages, &report)
	report.Machine = b.keptMachine()
	if err == nil {
		report.Manifest = &b.manifest
	}
	return report, err
}

// bake runs the stages. Afterwards, even after a failure, it removes the files and the VM that the
// stages made besides the image. After a failure the VM stays if KeepVM is set.
func (b *oven) bake(ctx context.Context, stages []stage, report *Report) (err error) {
	if b.target, err = newTarget(b.options.File); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.target.discard()) }()
	defer func() { err = errors.Join(err, b.removeMachine(ctx, err != nil)) }()
	for i, s := range stages {
		b.reporter.Step("%d/%d %s: %s", i+1, len(stages), s.name, s.change)
		result := &report.Steps[i]
		if result.Message, err = s.run(ctx); err != nil {
			result.State = plan.Failed
			return fmt.Errorf("%s: %w", s.name, err)
		}
		result.State = plan.Changed
	}
	return nil
}

func (b *oven) stages() []stage {
	all := []stage{{"machine", "make a temporary VM over " + b.base.String(), b.makeMachine},
		{"start", "start the VM and connect to it", b.startMachine}}
	if steps := b.setupSteps(); len(steps) > 0 {
		all = append(all, stage{"setup", "apply spec.setup: " + names(steps), b.setUp})
	}
	if b.hasKubernetes() {
		all = append(all, stage{"kubernetes", b.kubernetesChange(), b.installKubernetes})
	}
	if len(b.doc.Node.Spec.Kubernetes.Provisioners) > 0 {
		all = append(all, stage{"binaries", "push " + provisionerNames(b.doc), b.pushBinaries})
	}
	if b.pulls() {
		all = append(all, stage{"images", b.imagesChange(), b.pullImages})
	}
	return append(all,
		stage{"manifest", "record what is in the image", b.takeStock},
		stage{"generalize", "remove keys, certificates, logs and swdt's own files, then run sysprep", b.generalize},
		stage{"write", "write the disk to " + b.options.File, b.write},
	)
}
