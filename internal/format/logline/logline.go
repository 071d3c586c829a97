// Package logline parses lines of logs: their time, their level, and their
// wrapping. It supports the formats that a Windows node's programs write: klog,
// JSON, logfmt, the CRI log format of containers, and the times of .NET. A line
// in another format stays a line without a time.
//
// swdt and the agent both use this package. The agent needs only the function Time, which does
// not use package regexp: regexp is too large for a program that is sent to every node.
package logline

import (
	"bytes"
	"strings"
	"time"
)

// Level is the severity of a line; a higher value is worse.
type Level int

// Levels. Unknown is the level of a line that has none, Fatal is the level of an error that ends
// a program.
const (
	Unknown Level = iota
	Debug
	Info
	Warning
	Error
	Fatal
)

// Levels returns the levels that a user may select.
func Levels() []Level { return []Level{Debug, Info, Warning, Error, Fatal} }

func (l Level) String() string {
	return [...]string{"", "debug", "info", "warning", "error", "fatal"}[l]
}

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
}

// byteOrderMark is at the beginning of the UTF-8 files that some programs write.
const byteOrderMark = "\ufeff"

// IsCRI reports whether a line has the form of the CRI log format.
func IsCRI(line []byte) bool {
	const shortest = "2006-01-02T15:04:05Z stdout F"
	return len(line) >= len(shortest) && line[4] == '-' && line[7] == '-' && line[10] == 'T' &&
		(bytes.Contains(line[:min(len(line), searched)], []byte(" stdout ")) ||
			bytes.Contains(line[:min(len(line), searched)], []byte(" stderr ")))
}

// Parse parses one line. See Time for the meaning of `now`.
func Parse(line []byte, now time.Time) Line {
	line = bytes.TrimPrefix(bytes.TrimRight(line, "\r\n"), []byte(byteOrderMark))
	l := Line{}
	l.Time, _ = Time(line, now)
	if rest, ok := l.cri(line); ok {
		inner := Parse(rest, now)
		l.Level, l.Text, l.Format = inner.Level, inner.Text, CRI
		return l
	}
	l.Text = strings.ToValidUTF8(string(line), "�")
	l.Format, l.Level = form(line)
	return l
}

// cri parses the prefix of a container's line, such as "2026-11-20T14:29:59.1Z stdout F text". It
// sets Stream and Partial, and returns the text behind the prefix. ok is false if the line has no
// such prefix.
func (l *Line) cri(line []byte) (rest []byte, ok bool) {
	stamp, rest, ok := bytes.Cut(line, []byte(" "))
	if !ok || len(stamp) < len("2006-01-02T15:04:05Z") || stamp[10] != 'T' || l.Time.IsZero() {
		return nil, false
	}
	stream, rest, ok := bytes.Cut(rest, []byte(" "))
	if !ok || string(stream) != "stdout" && string(stream) != "stderr" {
		return nil, false
	}
	tag, rest, _ := bytes.Cut(rest, []byte(" "))
	first, _, _ := bytes.Cut(tag, []byte(":"))
	if string(first) != "F" && string(first) != "P" {
		return nil, false
	}
	l.Stream, l.Partial = string(stream), string(first) == "P"
	return rest, true
}

func form(line []byte) (Format, Level) {
	switch {
	case isKlog(line):
		return Klog, klogLevel(line[0])
	case len(line) > 1 && line[0] == '{' && line[len(line)-1] == '}':
		return JSON, jsonLevel(line)
	}
	for _, key := range []string{"level=", "lvl=", "severity="} {
		if value, ok := after(line, key); ok {
			return Logfmt, ParseLevel(value)
		}
	}
	return Plain, marked(line)
}

func klogLevel(letter byte) Level {
	switch letter {
	case 'I':
		return Info
	case 'W':
		return Warning
	case 'E':
		return Error
	}
	return Fatal
}

func isKlog(line []byte) bool {
	s := scanner{text: line[:min(len(line), searched)]}
	_, ok := s.klog(time.Unix(0, 0))
	return ok
}

// jsonLevel returns the level of a JSON line. It only searches for the field of the level and
// does not parse the JSON, since the line may be long or cut off.
func jsonLevel(line []byte) Level {
	for _, key := range []string{`"level":`, `"lvl":`, `"severity":`} {
		_, value, _ := bytes.Cut(line, []byte(key))
		// Python puts a space before the value. A value without quotes, such as a number, is
		// another kind of level.
		if value, ok := bytes.CutPrefix(bytes.TrimLeft(value, " "), []byte(`"`)); ok {
			value, _, _ = bytes.Cut(value, []byte(`"`))
			return ParseLevel(string(value))
		}
	}
	// Kubernetes's own JSON has no level: an informational line has a verbosity, and the line of an
	// error has the error's text.
	switch {
	case bytes.Contains(line, []byte(`"v":`)):
		return Info
	case bytes.Contains(line, []byte(`"err":`)):
		return Error
	}
	return Unknown
}

// after returns the word behind the text `key`. It returns false if this text is neither at the
// beginning of the line nor behind a space.
func after(line []byte, key string) (string, bool) {
	at := bytes.Index(line, []byte(key))
	if at < 0 || at > 0 && line[at-1] != ' ' {
		return "", false
	}
	value := bytes.TrimPrefix(line[at+len(key):], []byte(`"`))
	if end := bytes.IndexAny(value, " \""); end >= 0 {
		value = value[:end]
	}
	return string(value), true
}

// marked returns the level that a line has between brackets or bars. Calico ([INFO]), Open
// vSwitch (|WARN|) and many other programs mark lines in this way.
func marked(line []byte) Level {
	head := line[:min(len(line), searched)]
	for len(head) > 0 {
		at := bytes.IndexAny(head, "[|")
		if at < 0 {
			return Unknown
		}
		head = head[at+1:]
		end := bytes.IndexAny(head, "]|")
		if end < 0 {
			return Unknown
		}
		if level := ParseLevel(string(head[:end])); level != Unknown {
			return level
		}
	}
	return Unknown
}

// ParseLevel parses the name of a level, in the spellings that programs and people use. It
// returns Unknown for any other name.
func ParseLevel(name string) Level {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "trace", "debug", "dbg", "verbose":
		return Debug
	case "info", "information", "informational", "inf", "notice":
		return Info
	case "warning", "warn", "wrn":
		return Warning
	case "error", "err", "eror", "erro":
		return Error
	case "fatal", "critical", "crit", "panic", "emer", "emergency", "alert", "dpanic":
		return Fatal
	}
	return Unknown
}
