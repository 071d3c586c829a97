// Package vm makes and runs Windows virtual machines on your machine. It makes a VM from
// spec.machine of a node file, and knows the VM's address, host key and SSH key, with which swdt
// logs in to the node.
//
// A [Machine] is the record of one VM. A [Driver] uses one kind of virtualisation, such as QEMU: it
// creates, starts and stops the VM of a record, and takes the VM's screenshots and snapshots. A
// driver's only state is in the record's folder and in the virtualisation itself. This package does
// the work that is the same for all drivers: names, locks, records, keys, the node file.
//
//   - driver.go: what a driver does, its capabilities, its errors
//   - installer.go: the additional methods of a driver that can install Windows
//   - machine.go: the part of a VM's record that drivers need
//   - store.go, record.go, names.go, own_*.go: your VMs' folders and records
//   - lock.go: the lock of a VM, so that one command at a time works on it
//   - machines.go, plan.go, keys.go: plan, make and delete a VM
//   - run.go: start and stop a VM
//   - export.go: write a VM's disk into one file
//   - images.go: VMs whose disks are laid over a golden image, and their first start
//   - look.go: snapshots, screenshots, keys, consoles
//   - reach.go: the address and keys by which all other commands reach the guest
//   - await.go, estimate.go: wait for a guest that starts; estimate how long the start takes
//   - bridged.go, bridged_report.go: VMs on a bridge of your machine
//   - report.go: results of commands
//
// # Trust
//
// Other users of your machine can neither read nor plant anything in the store: swdt makes the
// store's folders for you alone, and refuses a folder that another user owns or can write to. A
// node file is only as trusted as the commands that you run with it: no name in a node file can
// select a path outside the store. Guests are treated as hostile: a guest cannot make swdt connect
// to your own machine, and after swdt has seen the host key of a VM, it accepts no other guest or
// program as that VM.
package vm
