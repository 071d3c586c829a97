//go:build !linux && !darwin

package cli

import "golang.org/x/term"

// keyAtATime lets reads return at each key, which is not shown. On a Windows
// console, output is not affected, and Ctrl-C arrives as a key.
func keyAtATime(fd int) error {
	_, err := term.MakeRaw(fd)
	return err
}
