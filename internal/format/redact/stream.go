package redact

import "bytes"

const (
	// window is how many bytes of a line are examined together, which limits the memory for any text.
	window = 64 << 10
	// overlap is how many bytes at the end of a window are examined again with the bytes that
	// follow, so that a name is not separated from its value.
	overlap = 4 << 10
	// keyLines limits the lines of a private key.
	keyLines = 400
	// strayLines is how many unrelated lines, in all, may come between the lines of a private
	// key.
	strayLines = 3
)

// bodyEdges are bytes that may surround a line of a key: spaces, and byte order marks.
const bodyEdges = " \t\xff\xfe\xef\xbb\xbf"

// Stream redacts one text that arrives in pieces.
type Stream struct {
	redactor *Redactor
	held     []byte // the bytes of a line that has not ended yet
	out      []byte
	midway   bool // the text begins inside a line, which is left out

	before    byte // the last character of this line that was passed on
	inLine    bool // held is not the beginning of its line
	inside    terminator
	named     int // number of lines in which the value of a secret name may still follow
	namedKind kind

	key    int // remaining lines of a private key; 0: not in a key
	stray  int
	public int // remaining lines of a certificate or similar block
	block  int // indentation of a name whose value consists of the deeper indented lines that follow; -1: none

	option []byte // the text before the item in the previous line, if this item is an option with a secret value
	kind   kind   // the kind of the secret value that belongs to the option

	after   after  // the meaning of the next line
	object  object // an object with the name of a secret that the next lines belong to
	delayed []byte // a line with a value, held until the next line, which may have the value's name

	view  []byte // the text being examined, without the NULs of UTF-16
	index []int32
}

// Stream returns a Stream that redacts one text.
func (r *Redactor) Stream() *Stream { return &Stream{redactor: r, block: -1} }

// Midway declares that the text begins in the middle of a file. The stream then drops the rest of
// the first line: it may be the value of a secret whose name is in the part that is missing.
func (s *Stream) Midway() { s.midway = true }

// Next accepts a piece and returns the bytes that can be passed on; they are valid until the next call.
func (s *Stream) Next(data []byte) []byte {
	s.out = s.out[:0]
	for len(data) > 0 {
		n := min(len(data), window-len(s.held))
		if end := bytes.IndexByte(data[:n], '\n'); end >= 0 {
			s.wholeText(join(s.held, data[:end+1]))
			s.held, data = s.held[:0], data[end+1:]
			continue
		}
		s.held, data = append(s.held, data[:n]...), data[n:]
		if len(s.held) == window {
			s.flush()
			done := s.piece(s.held, false)
			s.held = append(s.held[:0], s.held[done:]...)
		}
	}
	return s.out
}

// join returns `held` and `line` as one slice. It does not copy if nothing was held.
func join(held, line []byte) []byte {
	if len(held) == 0 {
		return line
	}
	return append(held, line...)
}

// End ends the text and returns the bytes that were held until now.
func (s *Stream) End() []byte {
	s.out = s.out[:0]
	if len(s.held) > 0 {
		s.wholeText(s.held)
		s.held = s.held[:0]
	}
	s.flush()
	return s.out
}

// wholeText handles a complete line. If the line is a field called value, wholeText holds the line
// back until the next line arrives, since the next line may have the name of the value.
func (s *Stream) wholeText(text []byte) {
	if len(s.delayed) > 0 {
		k := namesSecret(text)
		named := s.named == 0 && k != plain
		if named {
			s.named, s.namedKind = 1, k
		}
		s.flush()
		if named {
			s.line(text)
			s.named = 0 // the value came before this line
			return
		}
	}
	if s.named == 0 && !s.inLine && !s.midway && hasValueFirst(text) {
		s.delayed = append(s.delayed[:0], text...)
		return
	}
	s.line(text)
}

func (s *Stream) flush() {
	if len(s.delayed) > 0 {
		s.line(s.delayed)
		s.delayed = s.delayed[:0]
	}
}

// hasValueFirst reports whether a line begins with a field called value, in YAML, JSON or XML.
func hasValueFirst(line []byte) bool {
	rest := bytes.TrimLeft(line, " \t-<\"'{")
	if len(rest) < 7 || len(rest) == len(line) || string(lowerFive(rest)) != "value" {
		return false
	}
	c := rest[5]
	return c == ':' || c == '>' || isQuote(c)
}

func lowerFive(text []byte) []byte {
	five := [5]byte{lower(text[0]), text[1], text[2], text[3], text[4]}
	return five[:]
}

// namesSecret returns the kind of the name that is the value of a field called name or key, or
// plain if the line has no such field.
func namesSecret(line []byte) kind {
	rest := bytes.TrimLeft(line, " \t<\"'")
	if len(rest) < 5 {
		return plain
	}
	switch first := lower(rest[0]); {
	case (first == 'n' && string(rest[1:4]) == "ame"):
		rest = rest[4:]
	case (first == 'k' && string(rest[1:3]) == "ey"):
		rest = rest[3:]
	default:
		return plain
	}
	name := bytes.TrimLeft(rest, " \t\"':=>")
	end := 0
	for end < len(name) && (isToken(name[end]) || name[end] == '.') {
		end++
	}
	if len(name) == len(rest) {
		return plain
	}
	return kindOf(string(name[:end]))
}

// line handles a complete line, or the rest of a line if piece has handled its beginning.
func (s *Stream) line(text []byte) {
	for len(text) > 0 {
		text = text[s.piece(text, true):]
	}
	s.midway, s.inLine, s.before = false, false, 0
	if s.inside.over--; s.inside.over <= 0 {
		s.inside = terminator{}
	}
	if s.named > 0 {
		s.named--
	}
}

// piece handles as much of a line as can be decided, and returns how much that is.
func (s *Stream) piece(text []byte, ends bool) int {
	if s.midway {
		s.inLine = true
		return len(text)
	}
	view := s.look(text)
	if len(view) == 0 {
		s.out = append(s.out, text...)
		return len(text)
	}
	body := view
	if ends {
		body = bytes.TrimRight(view, "\r\n")
	}
	list := after{}
	if s.after.form == afterList && !s.inLine && ends {
		list = s.after
		s.after = after{}
	}
	if !s.inLine && ends && s.inside.over == 0 && list.form == afterNothing && s.wholeLine(text, body) {
		s.inside = terminator{}
		return len(text)
	}
	if !ends {
		s.after = after{}
	}
	c := &scan{r: s.redactor, text: body, prev: s.before, begins: !s.inLine, ends: ends, named: s.named,
		namedKind: s.namedKind, block: -1}
	if !s.inLine {
		c.members = s.continued(body)
	}
	c.all(s.inside, list)
	done, viewed := len(text), len(view)
	if !ends {
		viewed = c.safe(len(view))
		done = s.offset(viewed, len(text))
	}
	s.write(text[:done], c.spans, viewed)
	s.keepState(c, viewed, len(body), ends)
	if viewed > 0 {
		s.before = view[viewed-1]
	}
	s.inLine = true
	return done
}

// keepState keeps the part of the scan's state that the rest of the line, or the next lines, depend on.
func (s *Stream) keepState(c *scan, viewed, length int, ends bool) {
	s.inside = terminator{}
	for _, sp := range c.spans {
		if sp.open && (!ends && sp.end == viewed || ends && sp.end == length) {
			s.inside = sp.until
		}
	}
	if ends {
		s.after = c.after
	}
	if c.object.form != noObject {
		s.object = c.object
	}
	for _, m := range c.names {
		if m.at < viewed {
			s.named, s.namedKind = m.lines, m.kind
		}
	}
	switch c.pem {
	case pemPrivate:
		s.key, s.stray, s.public = keyLines, 0, 0
	case pemPublic:
		s.key, s.public = 0, keyLines
	case pemEnds:
		s.key, s.public = 0, 0
	}
	if ends && c.block >= 0 {
		s.block = c.block
	}
}

// look returns the view: the text without the NULs of UTF-16. If the text has NULs, look also
// builds the index, which has the position in the text of each byte of the view.
func (s *Stream) look(text []byte) []byte {
	s.index = s.index[:0]
	if bytes.IndexByte(text, 0) < 0 {
		return text
	}
	s.view = s.view[:0]
	for i, c := range text {
		if c != 0 {
			s.view = append(s.view, c)
			s.index = append(s.index, int32(i))
		}
	}
	return s.view
}

// offset converts a position in the view to a position in the text.
func (s *Stream) offset(viewed, length int) int {
	switch {
	case len(s.index) == 0:
		return viewed
	case viewed == len(s.index):
		return length
	}
	return int(s.index[viewed])
}

// write passes the text on, with the mark in place of each span.
func (s *Stream) write(text []byte, spans []span, viewed int) {
	at := 0
	for _, sp := range spans {
		if sp.start >= viewed {
			break
		}
		start, end := sp.start, min(sp.end, viewed)
		wide := false
		if len(s.index) > 0 {
			first, last := int(s.index[start]), int(s.index[max(start, end-1)])
			wide = first+1 < len(text) && text[first+1] == 0 || first > 0 && text[first-1] == 0
			start, end = first, last+1
		}
		if start < at { // inside a span that was redacted already
			continue
		}
		s.out = append(s.out, text[at:start]...)
		if start == end && sp.silent {
			at = start
			continue
		}
		if !wide {
			s.out = append(s.out, sp.quote...)
		}
		if !sp.silent {
			s.mark(wide)
		}
		if !wide {
			s.out = append(s.out, sp.quote...)
		}
		at = end
	}
	s.out = append(s.out, text[at:]...)
}

func (s *Stream) mark(wide bool) {
	if !wide {
		s.out = append(s.out, Mark...)
		return
	}
	for i := range len(Mark) {
		if i > 0 {
			s.out = append(s.out, 0)
		}
		s.out = append(s.out, Mark[i])
	}
}

// wholeLine redacts and writes a line that belongs to a secret because of earlier lines, or that
// looks like a line of a private key. For any other line it returns false and writes nothing.
func (s *Stream) wholeLine(text, body []byte) bool {
	start, end, secret := 0, len(body), false
	itemStart, itemEnd := s.item(body)
	if s.after.form != afterNothing && s.key == 0 && s.afterLine(text, body) {
		return true
	}
	switch indent := indentation(body); {
	case s.key > 0:
		start, end, secret = s.keyLine(body)
	case itemEnd > 0:
		start, end, secret = itemStart, itemEnd, true
	case len(body) == indent: // an empty line does not end a value
	case s.block >= 0 && indent > s.block:
		start, secret = indent, true
	case s.public > 0:
		s.public--
	case isBody(bytes.Trim(body, bodyEdges)):
		start, secret = len(body)-len(bytes.TrimLeft(body, bodyEdges)), true
		// The next lines belong to the key, up to the first line that does not look like a line of a key.
		s.key, s.stray = keyLines, strayLines
	default:
		s.block = -1
	}
	if !secret {
		return false
	}
	s.write(text, []span{{start: start, end: end}}, len(body))
	return true
}

// keyLine returns which part of a line belongs to a private key. The part excludes the prefix
// that a container's log has in each line.
func (s *Stream) keyLine(body []byte) (start, end int, secret bool) {
	s.key--
	if bytes.Contains(body, []byte("-----END")) || bytes.Contains(body, []byte("-----BEGIN")) {
		s.key = 0
		return 0, 0, false
	}
	trimmed := bytes.TrimRight(body, " \t\\\"',")
	start = bytes.LastIndexAny(trimmed, " \t\"'") + 1
	if last := trimmed[start:]; isBase64(last) && (start == indentation(body) || len(last) >= 16 || mixed(last) ||
		bytes.IndexByte(last, '=') > 0) {
		return start, len(trimmed), true
	}
	if s.stray++; s.stray > strayLines && len(trimmed) > 0 {
		s.key = 0
	}
	return 0, 0, false
}

// item returns the position of a value in a line if the previous line is the option that the value
// belongs to. In a list of JSON or YAML, option and value are two items, and each may have its own
// line.
func (s *Stream) item(body []byte) (start, end int) {
	begin := indentation(body)
	dashed := bytes.HasPrefix(body[begin:], []byte("- "))
	if dashed {
		begin += len("- ")
	}
	start, end = begin, len(bytes.TrimRight(body, " \t,"))
	quoted := start < end && (body[start] == '"' || body[start] == '\'')
	if quoted {
		if start, end = start+1, end-1; start > end || body[end] != body[begin] {
			end = start
		}
	}
	follows := len(s.option) > 0 && bytes.Equal(s.option, body[:begin])
	s.option = s.option[:0]
	switch {
	case start >= end || !quoted && (!dashed || isMapping(body[start:end]) || body[start] == '[' || body[start] == '{'):
	case body[start] != '-':
		if follows && !harmless(body[start:end], s.kind) {
			return start, end
		}
	case isName(body[start:end]):
		if s.kind = kindOf(string(body[start:end])); s.kind != plain {
			s.option = append(s.option, body[:begin]...)
		}
	}
	return 0, 0
}

func isName(text []byte) bool {
	for _, c := range text {
		if !isToken(c) && c != '.' {
			return false
		}
	}
	return true
}

func indentation(line []byte) int {
	for i, c := range line {
		if c != ' ' && c != '\t' {
			return i
		}
	}
	return len(line)
}
