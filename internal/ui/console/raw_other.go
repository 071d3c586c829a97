//go:build !linux && !darwin && !windows

package console

import (
	"io"
	"os"

	"golang.org/x/term"
)

func makeRaw(in, _ *os.File) (restore func(), err error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(int(in.Fd()), before) }, nil
}

// keysOf returns a reader of the terminal's keys.
func keysOf(in *os.File) io.Reader { return in }
