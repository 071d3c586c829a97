package qemu

import "github.com/swdt-dev/swdt/internal/vm"

// private checks nothing: the driver makes no VMs on Windows.
func private(string) error { return nil }

// supported reports why this system cannot run VMs with this driver.
func supported(action string) error { return vm.Unsupported(Name+" on Windows", action) }
