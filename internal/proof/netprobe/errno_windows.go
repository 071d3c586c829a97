package netprobe

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// refusals are the errors of an attempt that the other end rejected.
func refusals() []syscall.Errno {
	return []syscall.Errno{windows.WSAECONNREFUSED, windows.WSAECONNRESET, windows.WSAECONNABORTED}
}

// rejections are the errors of an attempt that the network or this system rejected.
func rejections() []syscall.Errno {
	return []syscall.Errno{windows.WSAEHOSTUNREACH, windows.WSAENETUNREACH, windows.WSAEACCES, windows.WSAENETDOWN,
		windows.WSAEHOSTDOWN}
}
