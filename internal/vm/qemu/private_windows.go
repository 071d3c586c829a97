package qemu

import "github.com/swdt-dev/swdt/internal/vm"

// private returns nil: the driver makes no VMs on Windows.
func private(string) error { return nil }

// supported returns an ErrUnsupported: the driver cannot run VMs on Windows.
func supported(action string) error { return vm.Unsupported(Name+" on Windows", action) }
