//go:build !windows

package netprobe

import (
	"syscall"
	"time"
)

// processTime returns the CPU time that this process has used.
func processTime() (time.Duration, error) {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}
