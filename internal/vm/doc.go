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
//   - machine.go: the record of a VM
package vm
