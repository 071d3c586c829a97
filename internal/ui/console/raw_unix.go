//go:build linux || darwin

package console

import (
	"io"
	"os"

	"golang.org/x/term"
)

// makeRaw makes the terminal raw and returns a function that puts it back. That function also drops
// keys that were not read: a reply of the terminal to the node's last query must not become input of
// your shell.
func makeRaw(in, _ *os.File) (restore func(), err error) {
	fd := int(in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, err
	}
	return func() {
		_ = term.Restore(fd, before)
		dropKeys(fd)
	}, nil
}

// keysOf returns a reader of the terminal's keys.
func keysOf(in *os.File) io.Reader { return in }
