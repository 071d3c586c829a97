package logline

import (
	"bytes"
	"time"
)

// fields collects the known keys of a structured line.
type fields struct {
	written   time.Time
	time      time.Time
	level     Level
	timeFirst bool // the line begins with its time
	errored   bool // klog's JSON: the line is about an error
	verbose   bool // klog's JSON: the line has a verbosity
	count     int
}

// add takes one field. Of two fields of the same meaning, the first counts.
func (f *fields) add(key, value []byte, isText bool) {
	f.count++
	switch string(key) {
	case "time", "ts", "timestamp", "@timestamp", "t", "@t", "asctime", "Timestamp":
		s := scanner{text: value}
		if t, ok := s.stamp(f.written); ok && f.time.IsZero() {
			f.time, f.timeFirst = t, f.count == 1
		}
	case "level", "lvl", "severity", "@l", "levelname", "log.level", "Level":
		level := ParseLevel(string(value))
		if !isText {
			level = numericLevel(string(key), string(value))
		}
		if f.level == Unknown {
			f.level = level
		}
	case "err":
		f.errored = true
	case "v":
		f.verbose = true
	}
}

// jsonLine reads the fields of a line of JSON. A line that is cut off has the fields before the cut.
func jsonLine(line []byte, written time.Time) (h head, ok bool) {
	f := fields{written: written}
	if !eachMember(line, f.add) || f.count == 0 {
		return head{}, false
	}
	// Kubernetes's own JSON has no level: an informational line has a verbosity, and the line of an
	// error has the error's text.
	switch {
	case f.level != Unknown:
	case f.verbose:
		f.level = Info
	case f.errored:
		f.level = Error
	}
	return head{time: f.time, level: f.level, format: JSON}, true
}

// eachMember calls add for each complete member of an object. It reports whether line begins as an object.
func eachMember(line []byte, add func(key, value []byte, isText bool)) bool {
	if len(line) < 2 || line[0] != '{' {
		return false
	}
	for rest := line[1:]; ; {
		rest = bytes.TrimLeft(rest, " \t,")
		key, after, ok := quoted(rest)
		if !ok {
			return len(rest) == 0 || rest[0] == '"' || rest[0] == '}'
		}
		if rest, ok = bytes.CutPrefix(bytes.TrimLeft(after, " \t"), []byte(":")); !ok {
			return len(rest) == 0
		}
		rest = bytes.TrimLeft(rest, " \t")
		value, after, isText := quoted(rest)
		if !isText {
			end := valueEnd(rest)
			if end < 0 {
				return true
			}
			value, after = bytes.TrimRight(rest[:end], " \t"), rest[end:]
		}
		add(key, value, isText)
		rest = after
	}
}

// quoted cuts a string of JSON off the text. The string keeps its escapes.
func quoted(text []byte) (inside, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return nil, text, false
	}
	for at := 1; ; at++ {
		next := bytes.IndexByte(text[at:], '"')
		if next < 0 {
			return nil, text, false
		}
		at += next
		escapes := 0
		for text[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return text[1:at], text[at+1:], true
		}
	}
}

// valueEnd returns where a number, a word, a list or an object ends, or -1 if the text is cut off before.
func valueEnd(text []byte) int {
	depth := 0
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			_, rest, ok := quoted(text[at:])
			if !ok {
				return -1
			}
			at = len(text) - len(rest) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
		case ',':
			if depth == 0 {
				return at
			}
		}
	}
	return -1
}

// logfmtLine reads the fields of a line such as time="2026-11-20T14:29:59Z" level=info msg="text".
func logfmtLine(line []byte, written time.Time) (h head, ok bool) {
	f := fields{written: written}
	rest := line
	for len(rest) > 0 {
		size := bytes.IndexAny(rest, "= \t\"")
		if size <= 0 || rest[size] != '=' {
			break
		}
		key := rest[:size]
		value, after, isQuoted := quoted(rest[size+1:])
		if !isQuoted {
			value, after, _ = bytes.Cut(rest[size+1:], []byte(" "))
		}
		f.add(key, value, true)
		rest = bytes.TrimLeft(after, " ")
	}
	return head{time: f.time, level: f.level, format: Logfmt}, f.level != Unknown || f.timeFirst
}
