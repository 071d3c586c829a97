// Package throwaway describes the throw-away program of `swdt selftest`. The program is the agent's
// own executable with a note behind its last byte, so swdt carries no further program, and two
// builds of the program differ in nothing but their notes. Windows ignores bytes behind the last
// section of an executable.
//
// Your machine writes the note (Build), and the agent reads it when it is started with Argument.
package throwaway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Argument is the agent's first argument when it runs as the throw-away program. The second
// argument is one of the modes.
const Argument = "throwaway"

// The modes of the program.
const (
	// Service runs until it is asked to stop. Its third argument is --log-file, and its fourth the
	// path of the file to which it appends a line at its start and at its end.
	Service = "service"
	// Echo prints each further argument on a line of stdout, then copies stdin to stdout, writes
	// EchoError to stderr, and ends with the exit code in its third argument.
	Echo = "echo"
	// Hold locks the file in its third argument, so that others cannot rename or remove it, writes its fourth argument
	// into the file, and ends with stdin.
	Hold = "hold"
)

// EchoError is the line that the mode Echo writes to stderr.
const EchoError = "this line is an error\n"

// Note distinguishes the builds of the program.
type Note struct {
	Version string `json:"version"`
	// ExitCode makes the mode Service end with this code as soon as it runs; 0: it does not end.
	ExitCode int `json:"exitCode,omitempty"`
}

const (
	noteSize  = 256
	noteMagic = "\nSWDT-THROWAWAY-PROGRAM\n"
)

// Build returns the program with that note, as a reader of the agent's executable followed by the
// note.
func Build(executable io.Reader, note Note) (io.Reader, error) {
	text, err := json.Marshal(note)
	if err != nil {
		return nil, fmt.Errorf("write the note of a throw-away program: %w", err)
	}
	if len(noteMagic)+len(text) > noteSize {
		return nil, fmt.Errorf("write the note of a throw-away program: it has %d bytes", len(text))
	}
	trailer := make([]byte, noteSize)
	copy(trailer[copy(trailer, noteMagic):], text)
	return io.MultiReader(executable, bytes.NewReader(trailer)), nil
}

// Read returns the note of the program in r, and the size of the agent's executable in front of
// the note, in bytes. ok is false if r has no note.
func Read(r io.ReaderAt, size int64) (note Note, executable int64, ok bool) {
	if size < noteSize {
		return Note{}, 0, false
	}
	trailer := make([]byte, noteSize)
	if n, _ := r.ReadAt(trailer, size-noteSize); n < noteSize {
		return Note{}, 0, false
	}
	text, found := bytes.CutPrefix(bytes.TrimRight(trailer, "\x00"), []byte(noteMagic))
	if !found || json.Unmarshal(text, &note) != nil {
		return Note{}, 0, false
	}
	return note, size - noteSize, true
}
