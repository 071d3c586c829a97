//go:build !linux && !darwin

package ui

import "golang.org/x/term"

// KeyAtATime makes each read return after one key, which the terminal does not show.
// On a Windows console, output is not affected, and Ctrl-C is read as a key.
func KeyAtATime(fd int) error {
	_, err := term.MakeRaw(fd)
	return err
}
