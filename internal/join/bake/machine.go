package bake

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// bootLimit bounds the time from the start of the VM until its SSH server answers.
const bootLimit = 15 * time.Minute

// temporary returns the node file of the temporary VM. swdt reaches the VM at a free port
// of 127.0.0.1, whatever network the node itself has. The VM reaches other machines if the node would.
func temporary(doc config.Document) config.Document {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	doc.Node.Metadata.Name = "bake-" + doc.Node.Metadata.Name + "-" + hex.EncodeToString(random[:])
	doc.Node.Spec.Credentials.Hostname = ""
	machine := *doc.Node.Spec.Machine
	own := machine.Network
	machine.Network = v1alpha1.MachineNetwork{Mode: "user", Adapter: own.Adapter, Address: "auto",
		Outbound: own.Outbound || own.Mode != "user"}
	doc.Node.Spec.Machine = &machine
	return doc
}

func (b *oven) name() string { return b.doc.Node.Metadata.Name }

func (b *oven) makeMachine(ctx context.Context) (string, error) {
	b.made = true // set before the call of Create: if Create fails, it may have made a part of the VM
	report, err := b.options.Machines.Create(ctx, b.doc, b.reporter)
	if err != nil {
		return "", err
	}
	b.base.path = report.Image // by now, Create has built a golden image if none existed
	return "VM " + report.Name, nil
}

func (b *oven) startMachine(ctx context.Context) (string, error) {
	if _, err := b.options.Machines.Start(ctx, b.name(), b.reporter); err != nil {
		return "", err
	}
	bounded, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	if _, err := b.options.Machines.Await(bounded, b.name(), b.reporter); err != nil {
		return "", err
	}
	var err error
	b.node, err = b.options.Connect(ctx, b.doc, b.reporter)
	return "", err
}

// removeMachine ends and removes the temporary VM. After a failure, it keeps the VM if the user has
// asked for that.
func (b *oven) removeMachine(ctx context.Context, failed bool) error {
	if b.node != nil {
		b.node.Leave(ctx)
	}
	if !b.made {
		return nil
	}
	if failed && b.options.KeepVM && b.options.Machines.Exist(b.name()) {
		b.reporter.Warn("the temporary VM is kept as %s: %s shows its address and key, %s removes it", b.name(),
			remedy.Command("vm", "status", "-n", b.name()), remedy.Command("vm", "delete", "-n", b.name()))
		return nil
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	if _, err := b.options.Machines.Delete(clean, b.name(), b.reporter); err != nil {
		return fmt.Errorf("%w; remove the temporary VM with %s", err, remedy.Command("vm", "delete", "-n", b.name()))
	}
	b.made = false
	return nil
}

// keptMachine returns the name of the temporary VM if the VM still exists, else "".
func (b *oven) keptMachine() string {
	if b.made && b.options.Machines.Exist(b.name()) {
		return b.name()
	}
	return ""
}
