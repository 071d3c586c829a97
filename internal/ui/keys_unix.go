//go:build linux || darwin

package ui

import "golang.org/x/sys/unix"

// KeyAtATime makes each read return after one key, which the terminal does not show.
// Unlike raw mode, this mode leaves Ctrl-C a signal and does not change newlines.
func KeyAtATime(fd int) error {
	mode, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	mode.Lflag &^= unix.ICANON | unix.ECHO
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(fd, setTermios, mode)
}
