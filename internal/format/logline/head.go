package logline

import (
	"bytes"
	"slices"
	"time"
)

// headOf parses the head of a line, or its known keys:
//
//	I1120 14:29:59.123456    4242 server.go:210] "text"                klog
//	kube-proxy.exe : E1120 14:29:59.123456    4242 server.go:210] text klog behind the prefix of a wrapper
//	{"level":"info","msg":"text","time":"2026-11-20T14:29:59Z"}        JSON
//	time="2026-11-20T14:29:59Z" level=info msg="text"                  logfmt
//	INFO[2026-11-20T14:29:59Z] text                                    logrus on a terminal
//	2026-11-20 14:29:59,123 ERROR - text                               a date, then perhaps a level
//	10.0.0.1 - - [20/Nov/2026:14:29:59 +0000] "GET / HTTP/1.1" 200     an access, in NCSA's form
//	panic: text                                                        a crash
//	[ERROR] text                                                       a level alone
//
// A date in any other place is part of the message.
func headOf(line []byte, written time.Time) head {
	line = withoutColours(line)
	if len(line) == 0 || line[0] == ' ' || line[0] == '\t' {
		return head{}
	}
	for _, form := range []func([]byte, time.Time) (head, bool){
		klogLine, jsonLine, logfmtLine, crashLine, terminalLine, datedLine, accessLine, iisLine, wrappedLine,
	} {
		if h, ok := form(line, written); ok {
			return h
		}
	}
	return head{level: levelFirst(line)}
}

// klogLine parses a line of klog.
func klogLine(line []byte, written time.Time) (head, bool) {
	s := scanner{text: line[:min(len(line), 64)]}
	t, ok := s.klog(written)
	return head{time: t, level: klogLevel(line[0]), format: Klog}, ok
}

// crashLine recognises the first line of the report of a crash: of Go, of Windows' exceptions as Go
// reports them, of .NET, Rust, C++ and Python.
func crashLine(line []byte, _ time.Time) (head, bool) {
	for _, begin := range []string{"panic: ", "fatal error: ", "Exception 0x", "Unhandled exception", "Unhandled Exception",
		"unexpected fault address ", "SIGSEGV: ", "thread 'main' panicked", "terminate called ", "FATAL EXCEPTION",
		"Traceback (most recent call last)", "runtime: out of memory", "runtime: goroutine stack exceeds",
		"runtime: panic before malloc"} {
		if bytes.HasPrefix(line, []byte(begin)) {
			return head{level: Fatal, crash: true}, true
		}
	}
	return head{}, false
}

// terminalLine parses the form that logrus writes to terminals: INFO[0012] text, with the seconds since the
// program's start, or INFO[2026-11-20T14:29:59Z] text.
func terminalLine(line []byte, written time.Time) (head, bool) {
	const word = 4
	if len(line) < word+2 || line[word] != '[' {
		return head{}, false
	}
	switch string(line[:word]) {
	case "TRAC", "DEBU", "INFO", "WARN", "ERRO", "FATA", "PANI":
	default:
		return head{}, false
	}
	h := head{level: ParseLevel(string(line[:word]))}
	s := scanner{text: line[word+1 : min(len(line), 64)]}
	if t, ok := s.stamp(written); ok && s.has("]") {
		h.time = t
	}
	return h, true
}

// datedLine parses a line that begins with a date: in brackets or without, behind a priority of syslog or
// a process's number as OpenSSH writes it, and with a level behind it or without.
func datedLine(line []byte, written time.Time) (h head, ok bool) {
	s := scanner{text: line[:min(len(line), 256)]}
	certain := s.has("[(")
	if s.has("<") {
		if priority := s.number(1, 3); s.has(">") && !s.bad && priority < 192 {
			h.level, certain = syslogLevel(priority), true
			_ = s.hasWord("1 ") // the version, in RFC 5424
		} else {
			s.at, s.bad = 0, false
		}
	}
	begin := s.at
	if h.time, ok = s.stamp(written); !ok {
		s.at, s.bad = begin, false
		if s.number(1, 6); s.bad || !s.has(" ") {
			return head{}, false
		}
		if h.time, ok = s.stamp(written); !ok {
			return head{}, false
		}
		certain = true
	}
	rest := bytes.TrimLeft(s.text[s.at:], "])'")
	if isW3C(rest) && h.time.Location() == written.Location() {
		certain = true
		h.time = time.Date(h.time.Year(), h.time.Month(), h.time.Day(), h.time.Hour(), h.time.Minute(), h.time.Second(),
			h.time.Nanosecond(), time.UTC)
	}
	if h.level == Unknown {
		h.level = levelAfter(rest)
	}
	if inner := innerLevel(rest, written); inner != Unknown {
		h.level = inner
	}
	isSlashed := bytes.IndexByte(s.text[begin:s.at], '/') == len("2026")
	certain = certain || isSlashed || h.level != Unknown || len(rest) > 0 && bytes.IndexByte([]byte("[|\t<("), rest[0]) >= 0 ||
		len(rest) > 1 && rest[0] == ' ' && (rest[1] == '[' || rest[1] == '|')
	h.doubtful = !certain
	return h, true
}

// accessLine parses an access in NCSA's common log format: host, identity, user, then the time in brackets.
func accessLine(line []byte, written time.Time) (head, bool) {
	before, rest, ok := bytes.Cut(line[:min(len(line), 256)], []byte(" ["))
	if !ok || bytes.Count(before, []byte(" ")) != 2 {
		return head{}, false
	}
	s := scanner{text: rest}
	t, ok := s.access(written)
	return head{time: t}, ok && s.has("]")
}

// iisLine parses a line of IIS' own format: client, user, date, time, site. Its times are local, its year may have two digits.
func iisLine(line []byte, written time.Time) (head, bool) {
	parts := bytes.SplitN(line[:min(len(line), 256)], []byte(", "), 6)
	if len(parts) < 6 || !bytes.HasPrefix(parts[4], []byte("W3SVC")) {
		return head{}, false
	}
	day := parts[2]
	if at := bytes.LastIndexByte(day, '/'); at >= 0 && len(day)-at == len("/26") {
		day = slices.Concat(day[:at+1], []byte("20"), day[at+1:])
	}
	s := scanner{text: slices.Concat(day, []byte(" "), parts[3])}
	t, ok := s.numeric(written)
	return head{time: t}, ok && s.at == len(s.text)
}

// isW3C reports whether a line's rest behind the date is of W3C's extended format, in which IIS and http.sys
// write. Its times are in UTC: the address of a machine, the name of a site or a method follows.
func isW3C(rest []byte) bool {
	word, _, ok := bytes.Cut(bytes.TrimLeft(rest, " "), []byte(" "))
	switch string(word[:min(len(word), 5)]) {
	case "W3SVC", "GET", "POST", "HEAD":
		return true
	}
	for _, c := range word {
		if !digit(c) && bytes.IndexByte([]byte(".:abcdefABCDEF%"), c) < 0 {
			return false
		}
	}
	return ok && (bytes.Count(word, []byte(".")) == 3 || bytes.Count(word, []byte(":")) > 1)
}

const mostPrefix = 96 // bytes of a wrapper's prefix, or of a syslog's host and program

// innerLevel returns the level of a line of klog or logfmt that another program's date and name precede, as
// in "2026-11-20T14:29:59Z node-1 kubelet[42]: E1120 14:29:59.123456 …".
func innerLevel(rest []byte, written time.Time) Level {
	_, inner, ok := bytes.Cut(rest[:min(len(rest), mostPrefix)], []byte(": "))
	if !ok {
		return Unknown
	}
	inner = rest[len(rest[:min(len(rest), mostPrefix)])-len(inner):]
	if h, ok := klogLine(append(inner[:len(inner):len(inner)], ' '), written); ok {
		return h.level
	}
	if h, ok := crashLine(inner, written); ok {
		return h.level
	}
	if h, ok := logfmtLine(inner, written); ok {
		return h.level
	}
	return Unknown
}

// wrappedLine parses a line behind the name of the program that wrote it: PowerShell writes
// "kube-proxy.exe : " before the first line of an error stream, others "kubelet: " or "[kubelet] ".
func wrappedLine(line []byte, written time.Time) (head, bool) {
	for _, separator := range []string{" : ", ": ", " | ", "] "} {
		name, _, ok := bytes.Cut(line[:min(len(line), mostPrefix)], []byte(separator))
		if !ok || !isName(name, separator) {
			continue
		}
		rest := line[len(name)+len(separator):]
		if len(rest) == 0 {
			continue
		}
		if h, ok := klogLine(rest, written); ok {
			return h, true
		}
		if h, ok := crashLine(rest, written); ok {
			return h, true
		}
		isProgram := bytes.HasSuffix(bytes.ToLower(bytes.TrimRight(name, `"'`)), []byte(".exe"))
		for _, form := range []func([]byte, time.Time) (head, bool){logfmtLine, jsonLine, terminalLine, datedLine} {
			if h, ok := form(rest, written); ok && isProgram && !h.doubtful {
				return h, true
			}
		}
	}
	return head{}, false
}

// isName reports whether a text is the name of a program, and not a part of a sentence. Only the path of
// an .exe may have spaces.
func isName(text []byte, separator string) bool {
	text, bracketed := bytes.CutPrefix(text, []byte("["))
	switch {
	case len(text) == 0 || bracketed != (separator == "] "):
		return false
	case bytes.HasSuffix(bytes.ToLower(bytes.TrimRight(text, `"'`)), []byte(".exe")):
		return true
	}
	return !bytes.ContainsAny(text, " \t\"={(<,;")
}

// withoutColours removes the escape sequences of terminals, if the line begins with some.
func withoutColours(line []byte) []byte {
	if bytes.IndexByte(line[:min(len(line), 64)], '\x1b') < 0 {
		return line
	}
	plain := make([]byte, 0, len(line))
	for len(line) > 0 {
		at := bytes.Index(line, []byte("\x1b["))
		if at < 0 {
			break
		}
		plain = append(plain, line[:at]...)
		line = bytes.TrimLeft(line[at+2:], "0123456789;")
		line = line[min(len(line), 1):]
	}
	return append(plain, line...)
}
