package process

// arguments returns nothing: swdt starts no QEMU on Windows.
func arguments(int) []string { return nil }
