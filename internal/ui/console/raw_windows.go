package console

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"
	"golang.org/x/term"
)

// makeRaw makes the console raw and returns a function that puts it back. That function also drops
// keys that were not read.
func makeRaw(in, out *os.File) (restore func(), err error) {
	screen := windows.Handle(out.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(screen, &mode); err != nil {
		return nil, err
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	err = windows.SetConsoleMode(screen, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_WRAP_AT_EOL_OUTPUT|
		windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING|windows.DISABLE_NEWLINE_AUTO_RETURN)
	if err != nil {
		return nil, errors.Join(err, term.Restore(int(in.Fd()), before))
	}
	return func() {
		_ = term.Restore(int(in.Fd()), before)
		_ = windows.FlushConsoleInputBuffer(windows.Handle(in.Fd()))
		_ = windows.SetConsoleMode(screen, mode)
	}, nil
}

// keysOf returns a reader of the console's keys.
func keysOf(in *os.File) io.Reader { return withCtrlZ{in} }

// withCtrlZ returns Ctrl-Z as a key. Go's os.File reports it as the end of the file.
type withCtrlZ struct{ from *os.File }

func (k withCtrlZ) Read(p []byte) (int, error) {
	const ctrlZ = 0x1a
	n, err := k.from.Read(p)
	if n == 0 && errors.Is(err, io.EOF) && len(p) > 0 {
		p[0] = ctrlZ
		return 1, nil
	}
	return n, err
}
