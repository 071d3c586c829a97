package main

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// peek asks whether the pipe is still connected, without reading from it.
func peek(handle windows.Handle) error {
	kernel32 := windows.NewLazySystemDLL("kernel32.dll")
	ok, _, err := kernel32.NewProc("PeekNamedPipe").Call(uintptr(handle), 0, 0, 0, 0, 0)
	if ok == 0 {
		if errno, is := err.(syscall.Errno); is && errno != 0 {
			return errno
		}
		return syscall.EINVAL
	}
	return nil
}
