package process

import "os/exec"

// Detach does nothing: swdt starts no QEMU on Windows.
func Detach(*exec.Cmd) {}
