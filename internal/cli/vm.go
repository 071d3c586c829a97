package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/localfile/earlier"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/golden"
	"github.com/swdt-dev/swdt/internal/vm/hyperv"
	"github.com/swdt-dev/swdt/internal/vm/libvirt"
	"github.com/swdt-dev/swdt/internal/vm/qemu"
)

func (a *app) vmCommand() *cobra.Command {
	cmd := group("vm", "Make and run Windows VMs on this machine",
		a.vmCheckCommand(), a.vmCreateCommand(), a.vmDeleteCommand(),
		a.vmStartCommand(), a.vmStopCommand(), a.vmRestartCommand(), a.vmListCommand(), a.vmStatusCommand(),
		a.vmSnapshotCommand(), a.vmAddressCommand(), a.vmConsoleCommand(), a.vmScreenshotCommand(),
		a.vmKeysCommand(), a.vmNetworkCommand(), a.vmImageCommand())
	cmd.Long = `Makes the virtual machine that spec.machine of a node file describes, and runs it
on this machine with QEMU or Hyper-V; or adopts a domain of libvirt. All other
commands then work with that node file: swdt fills in the VM's address, its SSH
key and its host key.

The commands work on the VMs of the node files (-c, -n). Without a node file, -n
names VMs that exist. Each VM has a folder below ~/.local/share/swdt/machines; no
command touches anything else, and an image that a VM is made from is only read.`
	cmd.Example = examples(
		"vm check", "can this machine run the VM?",
		"vm create --start --wait", "make it, and wait for its SSH server",
		"status", "the node's commands work with the same file",
		"vm snapshot save clean", "",
		"vm list", "all VMs of yours",
	)
	return cmd
}

// drivers returns the drivers of VMs; the first is the default on this system.
func drivers() []vm.Driver {
	all := []vm.Driver{qemu.New(qemu.Options{}), libvirt.New(), hyperv.New(hyperv.Options{})}
	if runtime.GOOS == "windows" {
		slices.Reverse(all)
	}
	return all
}

// machines returns the VMs of this user.
func (a *app) machines() (*vm.Machines, error) {
	store, err := vm.OpenStore("")
	if err != nil {
		return nil, err
	}
	command := "swdt"
	if a.invoked != nil {
		command = a.invoked.CommandPath()
	}
	machines := vm.NewMachines(store, command, a.env.Drivers()...).OnDocker(a.docker())
	return machines.WithTimes(earlierTimes("vm-times.json")).WithImages(func() (vm.Images, error) { return golden.Open("", machines) }), nil
}

// earlierTimes returns the durations of earlier work, which are in this file of the cache folder. Without
// a cache folder, swdt knows and stores no durations.
func earlierTimes(file string) earlier.Times {
	cache, err := localfile.CacheFolder()
	if err != nil {
		return earlier.Times{}
	}
	return earlier.At(filepath.Join(cache, "swdt", file))
}

// locate completes the credentials of a node that is a VM.
func (a *app) locate(ctx context.Context, document config.Document) (config.Document, error) {
	if document.Node.Spec.Machine == nil {
		return document, nil
	}
	machines, err := a.machines()
	if err != nil {
		return document, err
	}
	located, err := machines.Reach(ctx, document)
	if a.global.knownHosts != "" {
		located.KnownHosts, located.AcceptNewHostKey = "", false
	}
	return located, err
}

// vmDocuments returns the nodes of the node files that have a VM.
func (a *app) vmDocuments() ([]config.Document, error) {
	documents, err := a.documents()
	if err != nil {
		return nil, err
	}
	none := func(d config.Document) bool { return d.Node.Spec.Machine == nil }
	vms := slices.DeleteFunc(slices.Clone(documents), none)
	if len(vms) == 0 {
		return nil, usagef("%v", &vm.NoMachineError{Node: documents[0].Node.Metadata.Name})
	}
	return vms, nil
}

// vmTargets returns the VMs to work on: the VMs of the node files, or, if no node file is
// named, the existing VMs that -n names.
func (a *app) vmTargets(machines *vm.Machines) ([]config.Document, error) {
	if err := a.global.validate(); err != nil {
		return nil, err
	}
	named := len(a.global.config) > 0 || a.env.Getenv(configVariable) != "" || a.global.selector != ""
	if named || len(a.global.nodes) == 0 {
		documents, err := a.vmDocuments()
		var none *config.Error
		if _, missing := config.DefaultSource(); !named && missing != nil && errors.As(err, &none) {
			return nil, usagef("there is no node file: name the VM with %s, or a node file with -c; "+
				"`swdt vm list` lists your VMs", nodeFlagOf(a.invoked))
		}
		return documents, err
	}
	if !machines.Exist(a.global.nodes...) {
		if _, err := config.DefaultSource(); err == nil {
			return a.vmDocuments()
		}
	}
	var documents []config.Document
	names := slices.Clone(a.global.nodes) // without duplicates: a completion parses the flags twice
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		documents = append(documents, config.Document{Node: v1alpha1.Node{Metadata: v1alpha1.Metadata{Name: name}}})
	}
	return documents, nil
}

// oneVM returns the name of the only VM to work on.
func (a *app) oneVM(machines *vm.Machines) (string, error) {
	documents, err := a.vmTargets(machines)
	if err != nil {
		return "", err
	}
	if len(documents) > 1 {
		return "", usagef("this works on one VM, and there are %d: choose it with --node", len(documents))
	}
	return documents[0].Node.Metadata.Name, nil
}

type (
	// vmWork is a command's work on the VM of a node.
	vmWork func(context.Context, config.Document, ui.Reporter) (vm.Report, error)
	// vmAction is a command's work on the VM with this name.
	vmAction func(ctx context.Context, machines *vm.Machines, name string, r ui.Reporter) (vm.Report, error)
)

// onVMs does the work on every VM, on several at the same time, and prints the results.
func (a *app) onVMs(ctx context.Context, documents []config.Document, work vmWork) error {
	defer interrupt.AllowTime(ctx, cleanUpLimit)()
	story := a.newStory()
	results := a.eachVM(ctx, story, documents, work)
	story.End()
	reports := vm.Reports{VMs: []vm.Report{}}
	for _, result := range results {
		report := result.Value
		if result.Err != nil {
			report = vm.Failed(result.Name(), result.Err)
		}
		reports.VMs = append(reports.VMs, report)
	}
	return errors.Join(a.print(reports, func(p *ui.Page) error { return reports.WriteMessages(p) }),
		fleet.Failures(results))
}

func (a *app) eachVM(
	ctx context.Context, story *ui.Story, documents []config.Document, work vmWork,
) []fleet.Result[vm.Report] {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	each := func(ctx context.Context, document config.Document) (vm.Report, error) {
		name := document.Node.Metadata.Name
		r := story.Node(a.vmLabel(documents, document))
		defer ui.Done(r)
		for _, warning := range document.Warnings {
			r.Warn("%s", warning)
		}
		report, err := work(ctx, document, r)
		return report, a.remedied(name, a.withoutFile(explain(ctx, err)))
	}
	return fleet.Run(ctx, documents, a.global.parallel, each)
}

// vmLabel returns the label of a VM's progress. It returns "" if there is only one VM and the
// progress is text for people.
func (a *app) vmLabel(documents []config.Document, document config.Document) string {
	if len(documents) == 1 && a.global.logs == "text" {
		return ""
	}
	return document.Node.Metadata.Name
}

// onTargets does the work on every VM that the command line selects.
func (a *app) onTargets(ctx context.Context, work vmAction) error {
	machines, err := a.machines()
	if err != nil {
		return err
	}
	documents, err := a.vmTargets(machines)
	if err != nil {
		return err
	}
	return a.onNamed(ctx, machines, documents, work)
}

// onNamed does the work on the VMs of these documents.
func (a *app) onNamed(
	ctx context.Context, machines *vm.Machines, documents []config.Document, work vmAction,
) error {
	return a.onVMs(ctx, documents, func(ctx context.Context, d config.Document, r ui.Reporter) (vm.Report, error) {
		return work(ctx, machines, d.Node.Metadata.Name, r)
	})
}

// existing returns the documents whose VMs exist. If a VM does not exist and no node file was
// read, so that the name is from the command line, existing returns an error.
func (a *app) existing(machines *vm.Machines, documents []config.Document) ([]config.Document, error) {
	missing, err := machines.Missing(vmNames(documents)...)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 && a.loaded == 0 {
		return nil, a.withoutFile(&vm.UnknownError{Name: missing[0]})
	}
	return slices.DeleteFunc(slices.Clone(documents), func(d config.Document) bool {
		return slices.Contains(missing, d.Node.Metadata.Name)
	}), nil
}

// withVM passes the only VM that the command line selects to the function look.
func (a *app) withVM(
	ctx context.Context, look func(ctx context.Context, machines *vm.Machines, name string) error,
) error {
	machines, err := a.machines()
	if err != nil {
		return err
	}
	name, err := a.oneVM(machines)
	if err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	return a.remedied(name, a.withoutFile(explain(ctx, look(ctx, machines, name))))
}

// withoutFile replaces the remedy of an error about a VM that does not exist, if no node file was
// read that could describe this VM.
func (a *app) withoutFile(err error) error {
	var unknown *vm.UnknownError
	if a.loaded > 0 || !errors.As(err, &unknown) {
		return err
	}
	return &remediedError{"there is no VM " + unknown.Name + ", and no node file to make it from; " +
		"`swdt vm list` lists your VMs, -c names a node file", err}
}

// vmNames returns the names of documents for a question.
func vmNames(documents []config.Document) (names []string) {
	for _, document := range documents {
		names = append(names, document.Node.Metadata.Name)
	}
	return names
}

// severalVMs returns a number of VMs in words.
func severalVMs(n int) string {
	if n == 1 {
		return "1 VM"
	}
	return fmt.Sprintf("%d VMs", n)
}
