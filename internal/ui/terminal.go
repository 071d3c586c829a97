package ui

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Terminal is a stream that a person reads. All text written to it passes a PrintableWriter, so
// that no text controls the terminal, whatever its source. Only two things are written to Raw
// instead. One is swdt's own control sequences, around text that is Printable. The other is the
// output of programs that the user runs and that use the terminal meanwhile.
type Terminal struct {
	file *os.File

	mutex sync.Mutex
	shown *PrintableWriter
}

// Guarded returns the streams, with terminals replaced by *Terminal values.
func Guarded(streams Streams) Streams {
	return Streams{In: streams.In, Out: guarded(streams.Out), Err: guarded(streams.Err)}
}

func guarded(w io.Writer) io.Writer {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return w
	}
	return &Terminal{file: file, shown: NewPrintableWriter(file)}
}

// Write writes text through the PrintableWriter.
func (t *Terminal) Write(text []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.shown.Write(text)
}

// File returns the terminal itself, for its size and its modes.
func (t *Terminal) File() *os.File { return t.file }

// Raw returns the stream without the PrintableWriter. For a Terminal that is its file; any
// other writer is returned unchanged.
func Raw(w io.Writer) io.Writer {
	if t, ok := w.(*Terminal); ok {
		return t.file
	}
	return w
}

// IsTerminal reports whether a stream is a person's terminal.
func IsTerminal(stream any) bool {
	switch s := stream.(type) {
	case *Terminal:
		return true
	case *os.File:
		return term.IsTerminal(int(s.Fd()))
	}
	return false
}
