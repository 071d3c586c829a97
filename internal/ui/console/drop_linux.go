package console

import "golang.org/x/sys/unix"

func dropKeys(fd int) { _ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
