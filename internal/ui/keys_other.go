//go:build !linux && !darwin

package ui

import "golang.org/x/term"

// KeyAtATime makes reads return at each key, which is not shown. On a Windows console,
// output is not affected, and Ctrl-C arrives as a key.
func KeyAtATime(fd int) error {
	_, err := term.MakeRaw(fd)
	return err
}
