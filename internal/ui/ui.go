// Package ui is how commands talk to people and tools. The rules live here:
//
//   - stdout is the result, and nothing else: text, or one JSON or YAML document.
//   - stderr is the story: progress on a terminal, plain lines otherwise, JSON
//     lines with --log-format json.
//   - Nothing secret is ever passed to a Reporter.
//   - Text that a node, a cluster or a file had a part in passes a PrintableWriter
//     before people see it, so that it cannot move a terminal's cursor or worse.
package ui

import "io"

// Streams are a command's standard streams, injected so that tests have theirs.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Reporter tells the story of one node's work as it happens. Implementations
// are safe for concurrent use.
type Reporter interface {
	// Step says what is being done now; it replaces the last step on a terminal.
	Step(format string, args ...any)
	// Info is a line worth keeping, Warn one that deserves attention, Debug one
	// for -v.
	Info(format string, args ...any)
	Warn(format string, args ...any)
	Debug(format string, args ...any)
	// Transfer begins the progress of so many bytes; the returned Progress must
	// be ended.
	Transfer(label string, total int64) Progress
}

// Progress counts transferred bytes.
type Progress interface {
	Add(n int64)
	End()
}

// Discard is the Reporter that says nothing.
type Discard struct{}

func (Discard) Step(string, ...any)             {}
func (Discard) Info(string, ...any)             {}
func (Discard) Warn(string, ...any)             {}
func (Discard) Debug(string, ...any)            {}
func (Discard) Transfer(string, int64) Progress { return discardProgress{} }

type discardProgress struct{}

func (discardProgress) Add(int64) {}
func (discardProgress) End()      {}
