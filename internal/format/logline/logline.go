// Package logline parses lines of logs: their time, their level, and their wrapping. It supports the
// formats that a Windows node's programs write; see head.go. The time and the level of a line are
// at its head or under the known keys of JSON and logfmt. A date elsewhere is part of the message.
//
//   - raw.go: cuts raw text into lines: runs of NUL, UTF-16 without a mark
//   - head.go, fields.go, level.go, time.go: parse one line, without regard to the lines around it
//   - reader.go: the lines of one log, each with the time and the level of the line that it continues
//   - wide.go: UTF-16 with a mark
//
// swdt and the agent both use this package. It does not use package regexp, which is too large for a
// program that is sent to every node.
package logline

import (
	"bytes"
	"strings"
	"time"
)

// Format is the format of a line.
type Format string

// Formats.
const (
	Plain  Format = ""
	Klog   Format = "klog"
	JSON   Format = "json"
	Logfmt Format = "logfmt"
	CRI    Format = "cri" // a container's stdout or stderr, as its runtime writes it
)

// Line is a parsed line.
type Line struct {
	Time    time.Time // zero if the line has none
	Level   Level
	Format  Format
	Text    string // the line without its ending and, for CRI, without the runtime's prefix
	Stream  string // CRI: stdout or stderr
	Partial bool   // CRI: the next line continues the container's line

	head
}

// head holds the facts that the head of a line shows.
type head struct {
	time     time.Time
	level    Level
	format   Format
	doubtful bool // the time may be a date in text that continues another line
	crash    bool // the line begins the report of a crash, which ends with the program
}

// judged is the number of bytes at the beginning of a line that are searched for its time and level.
// It is less than what the agent holds of a log, so that your machine and the node judge alike.
const judged = 64 << 10

// byteOrderMark is at the beginning of the UTF-8 files that some programs write.
const byteOrderMark = "\ufeff"

// Parse parses one line, without regard to the lines before it. A time without a year is of the latest
// year in which it is not later than a day after `written`, the time of the log's last write; a time
// without a zone is in the zone of `written`.
func Parse(line []byte, written time.Time) Line {
	line = bytes.TrimPrefix(bytes.TrimRight(line, "\r\n"), []byte(byteOrderMark))
	l := Line{}
	text := line
	if c, ok := parseCRI(line, written); ok {
		text = c.text
		l.Stream, l.Partial = c.stream, c.partial
		l.head = headOf(c.text[:min(len(c.text), judged)], written)
		l.time, l.format, l.doubtful = c.time, CRI, false
	} else {
		l.head = headOf(line[:min(len(line), judged)], written)
	}
	l.Time, l.Level, l.Format = l.time, l.level, l.format
	l.Text = strings.ToValidUTF8(string(text), "�")
	return l
}

// IsCRI reports whether a line has the form of the CRI log format.
func IsCRI(line []byte) bool {
	_, ok := parseCRI(line, time.Unix(0, 0))
	return ok
}

// cri is a line of a container.
type cri struct {
	time    time.Time
	stream  string
	partial bool
	text    []byte
}

// parseCRI parses a container's line, such as "2026-11-20T14:29:59.1Z stdout F text". ok is false if the
// line has no such prefix.
func parseCRI(line []byte, written time.Time) (c cri, ok bool) {
	s := scanner{text: line[:min(len(line), len("2006-01-02T15:04:05.999999999+00:00 stdout F "))]}
	if c.time, ok = s.iso(written); !ok || line[10] != 'T' || !s.has(" ") {
		return cri{}, false
	}
	stream, rest, ok := bytes.Cut(line[s.at:], []byte(" "))
	if !ok || string(stream) != "stdout" && string(stream) != "stderr" {
		return cri{}, false
	}
	tag, rest, _ := bytes.Cut(rest, []byte(" "))
	first, _, _ := bytes.Cut(tag, []byte(":"))
	if string(first) != "F" && string(first) != "P" {
		return cri{}, false
	}
	c.stream, c.partial, c.text = string(stream), string(first) == "P", rest
	return c, true
}
