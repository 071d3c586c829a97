package process

// arguments returns nothing: swdt starts no QEMU on Windows.
func arguments(int) []string { return nil }

// matching returns nothing: swdt starts no QEMU on Windows.
func matching([]string) []int { return nil }

// ending returns false: this system does not report whether a process is ending.
func ending(int) bool { return false }
