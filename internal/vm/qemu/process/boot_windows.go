package process

// BootID returns "": swdt starts no QEMU on Windows.
func BootID() string { return "" }

// KernelRelease returns "": swdt starts no QEMU on Windows.
func KernelRelease() string { return "" }
