// Package ui prints the results and the progress of commands, for people and tools. Its
// rules:
//
//   - stdout is the result, and nothing else: text, or one JSON or YAML document.
//   - stderr is for progress: live lines on a terminal, plain lines otherwise, JSON
//     lines with --log-format json.
//   - Nothing secret is ever passed to a Reporter.
//   - Text that may come from a node, a cluster or a file passes a PrintableWriter
//     before people see it, so that it cannot control the terminal.
package ui

import "io"

// Streams are a command's standard streams. They are injected, so that tests use their own.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Reporter reports the progress of one node's work. Implementations are safe for
// concurrent use.
type Reporter interface {
	// Step reports the current step; on a terminal it replaces the previous one.
	Step(format string, args ...any)
	// Info reports a line that stays visible.
	Info(format string, args ...any)
	// Warn reports a line that deserves attention.
	Warn(format string, args ...any)
	// Debug reports a line for -v.
	Debug(format string, args ...any)
	// Transfer starts to report a transfer of the given number of bytes. The caller must end the
	// returned Progress.
	Transfer(label string, total int64) Progress
}

// Progress counts transferred bytes.
type Progress interface {
	Add(n int64)
	End()
}

// Discard is a Reporter that reports nothing.
type Discard struct{}

func (Discard) Step(string, ...any)             {}
func (Discard) Info(string, ...any)             {}
func (Discard) Warn(string, ...any)             {}
func (Discard) Debug(string, ...any)            {}
func (Discard) Transfer(string, int64) Progress { return discardProgress{} }

type discardProgress struct{}

func (discardProgress) Add(int64) {}
func (discardProgress) End()      {}
