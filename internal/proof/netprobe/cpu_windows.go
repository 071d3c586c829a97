package netprobe

import (
	"syscall"
	"time"
)

// processTime returns the CPU time that this process has used.
func processTime() (time.Duration, error) {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0, err
	}
	var created, ended, kernel, user syscall.Filetime
	err = syscall.GetProcessTimes(self, &created, &ended, &kernel, &user)
	return elapsed(kernel) + elapsed(user), err
}

// elapsed returns the duration that GetProcessTimes reports, in units of 100 ns.
func elapsed(t syscall.Filetime) time.Duration {
	const unit = 100 * time.Nanosecond
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * unit
}
