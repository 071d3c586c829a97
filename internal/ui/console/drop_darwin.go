package console

import "golang.org/x/sys/unix"

func dropKeys(fd int) { _ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, unix.TCIFLUSH) }
