package logline

import (
	"bytes"
	"strings"
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

// ParseLevel parses the name of a level, in the spellings that programs and people use. It
// returns Unknown for any other name.
func ParseLevel(name string) Level {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "trace", "trac", "trce", "debug", "debu", "dbg", "dbug", "verbose", "vrb", "debug1",
		"debug2", "debug3":
		return Debug
	case "info", "information", "informational", "inf", "notice":
		return Info
	case "warning", "warn", "wrn":
		return Warning
	case "error", "err", "eror", "erro", "fail":
		return Error
	case "fatal", "fata", "ftl", "critical", "crit", "crt", "panic", "pani", "emer", "emerg", "emergency", "alert",
		"dpanic":
		return Fatal
	}
	return Unknown
}

func klogLevel(letter byte) Level {
	switch letter {
	case 'I':
		return Info
	case 'W':
		return Warning
	case 'E':
		return Error
	case 'F':
		return Fatal
	case 'D':
		return Debug
	}
	return Unknown
}

// numericLevel returns the level of a number: of bunyan and pino, where 10 is trace and 60 is fatal, or of ETW, whose key
// is Level. Other numbers are no level.
func numericLevel(key, number string) Level {
	etw := map[string]Level{"1": Fatal, "2": Error, "3": Warning, "4": Info, "5": Debug}
	if key == "Level" {
		return etw[number]
	}
	return map[string]Level{"10": Debug, "20": Debug, "30": Info, "40": Warning, "50": Error, "60": Fatal}[number]
}

// syslogLevel returns the level of a priority of syslog, whose lowest three bits are the severity.
func syslogLevel(priority int) Level {
	return [...]Level{Fatal, Fatal, Fatal, Error, Warning, Info, Info, Debug}[priority&7]
}

// isProse reports whether a word is a common word of messages that some programs use as a level.
// Without a mark, such a word at the beginning of a message is no level.
func isProse(word string) bool {
	switch strings.ToLower(word) {
	case "info", "information", "inf", "debug", "dbg", "trace", "warn", "warning", "wrn", "error", "err":
		return false
	}
	return true
}

const (
	mostTokens = 8   // between a time and a level: a logger, a thread, a process
	mostBefore = 160 // bytes between a time and the end of a level
)

// levelAfter returns the level between the time of a line and its message, such as of
//
//	[ERROR][123] felix/x.go 1: text      |00001|vlog|WARN|opened      1234 ERROR cloudbaseinit.init [-] text
//	ERROR - text      - name - ERROR - text      Info: text      , Info      CBS text      I! text
func levelAfter(rest []byte) Level {
	rest = rest[:min(len(rest), mostBefore)]
	words := 0
	for n := range mostTokens {
		rest = bytes.TrimLeft(rest, " \t|-:,;")
		t := tokenOf(rest)
		if t.size == 0 {
			return Unknown
		}
		level := ParseLevel(t.text)
		switch {
		case t.marked && len(t.text) == 1:
			level = klogLevel(t.text[0])
		case len(t.text) == 2 && t.text[1] == '!': // of CloudWatch's agent
			return klogLevel(t.text[0])
		}
		isLevel := t.marked || t.ended || strings.ToUpper(t.text) == t.text || n == 0 && !isProse(t.text)
		if level != Unknown && isLevel {
			return level
		}
		if !t.marked && isWord(t.text) {
			words++
		}
		if words > 1 || !t.marked && t.ended && n > 0 && bytes.HasPrefix(rest[t.size:], []byte(": ")) {
			return Unknown // the message has begun
		}
		rest = rest[t.size:]
	}
	return Unknown
}

// token is a word of a line's head.
type token struct {
	text   string
	size   int  // bytes, with the brackets
	marked bool // between brackets, or between bars
	ended  bool // a mark follows it, so that it is not a word of a sentence
}

func tokenOf(text []byte) token {
	if len(text) == 0 {
		return token{}
	}
	if at := strings.IndexByte("[(<", text[0]); at >= 0 {
		inside, _, ok := bytes.Cut(text[1:], []byte{"])>"[at]})
		if !ok {
			return token{}
		}
		name := string(inside)
		if _, after, ok := strings.Cut(name, ":"); ok && ParseLevel(after) != Unknown {
			name = after // Apache: [core:error]
		}
		return token{text: strings.TrimSpace(name), size: len(inside) + 2, marked: true}
	}
	end := bytes.IndexAny(text, " \t|[]:,")
	if end < 0 {
		return token{text: string(text), size: len(text)}
	}
	rest := text[end:]
	ended := rest[0] != ' ' && rest[0] != '[' || bytes.HasPrefix(rest, []byte("  ")) || bytes.HasPrefix(rest, []byte(" - ")) ||
		bytes.HasPrefix(rest, []byte(" |")) || bytes.HasPrefix(rest, []byte(" : "))
	return token{text: string(text[:end]), size: max(end, 1), ended: ended}
}

// isWord reports whether a token is a plain word, and not a number, a path or the name of a logger.
func isWord(token string) bool {
	for _, c := range token {
		if c >= '0' && c <= '9' || strings.ContainsRune("./\\_()#=", c) {
			return false
		}
	}
	return true
}

// levelFirst returns the level of a line that begins with its level and has no time, such as
// "[ERROR] plugin/errors: text", "WARNING: text" or "fail: Name[0]".
func levelFirst(line []byte) Level {
	t := tokenOf(line[:min(len(line), mostBefore)])
	level := ParseLevel(t.text)
	switch {
	case t.marked && len(t.text) > 1:
		return level
	case t.marked && len(t.text) == 1 && line[0] == '<' && t.text[0] >= '0' && t.text[0] <= '7': // the kernel's levels
		return syslogLevel(int(t.text[0] - '0'))
	case t.ended && (strings.ToUpper(t.text) == t.text || line[t.size] == ':'):
		return level
	case strings.ToUpper(t.text) == t.text && t.size < len(line):
		return level
	}
	return Unknown
}
