//go:build linux || darwin

package cli

import "golang.org/x/sys/unix"

// keyAtATime lets reads return at each key, which is not shown. Unlike raw mode
// it leaves Ctrl-C a signal and newlines what they are.
func keyAtATime(fd int) error {
	mode, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	mode.Lflag &^= unix.ICANON | unix.ECHO
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(fd, setTermios, mode)
}
