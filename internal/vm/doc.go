// Package vm makes and runs Windows virtual machines on your machine: it turns
// spec.machine of a node file into a VM whose address, host key and key file a node
// file can name.
//
// A [Machine] is the record of one VM. A [Driver] knows one virtualisation: it creates,
// starts, stops and photographs the VM of a record, and keeps no state but the record's
// folder and what its virtualisation keeps. Everything that is the same for all drivers
// (names, locks, records, keys, the node file) is done once, above them.
//
//   - driver.go: what a driver does, its capabilities, its errors
//   - installer.go: what a driver also does that can install Windows
//   - machine.go: the part of a VM's record that drivers need
//   - store.go, record.go, names.go, own_*.go: your VMs' folders and records
//   - lock.go: one command at a time works on a VM
//   - machines.go, plan.go, keys.go: plan, make and delete a VM
//   - run.go, export.go: start and stop a VM; its disk as one file
//   - images.go: a VM that is laid over a golden image, and its first start
//   - look.go, reach.go: snapshots, screens; the way to the guest for all other commands
//   - await.go, estimate.go: wait for a guest that starts; how long it needs
//   - bridged.go, bridged_report.go: VMs on a bridge of your machine
//   - report.go: results of commands
//
// # Trust
//
// Other users of your machine can neither read nor plant anything in the store: its
// folders belong to you alone, or swdt does not use them. A node file is only as trusted as
// the commands that you run with it: no name in it leads out of the store. A guest is hostile: it
// cannot lead swdt to your own machine, and once its host key was seen, no other guest or
// program is taken for it.
package vm
