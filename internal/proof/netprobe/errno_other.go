//go:build !windows

package netprobe

import "syscall"

// refusals are the errors of an attempt that the other end rejected.
func refusals() []syscall.Errno {
	return []syscall.Errno{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE}
}

// rejections are the errors of an attempt that the network or this system rejected.
func rejections() []syscall.Errno {
	return []syscall.Errno{syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EACCES, syscall.EPERM, syscall.ENETDOWN,
		syscall.EHOSTDOWN}
}
