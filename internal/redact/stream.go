package redact

import "bytes"

const (
	// window is how much of a line is looked at together, bytes. Memory is bounded
	// by it, whatever the text.
	window = 64 << 10
	// overlap of a longer line is looked at again with what follows it: what may
	// begin in it, a name with its value, is not cut.
	overlap = 4 << 10
	// keyLines are the lines that a private key may have.
	keyLines = 400
	// strayLines are lines without any of the key, between two of it, that are
	// taken for something else's.
	strayLines = 3
)

// bodyEdges may stand around a line of a key: spaces, the mark of a file's
// encoding.
const bodyEdges = " \t\xff\xfe\xef\xbb\xbf"

// Stream takes secrets out of one text that arrives in pieces.
type Stream struct {
	redactor *Redactor
	held     []byte // of a line whose end is not here
	out      []byte
	midway   bool // the beginning of the text is within a line, which is left out

	before    byte // the last character that was passed on, of the same line
	inLine    bool // held is not the beginning of its line
	inside    terminator
	named     int // lines in which the value of a secret name may still come
	namedKind kind

	key    int // lines left of a private key that has begun; 0: in none
	stray  int
	public int // the same of a certificate and the like
	block  int // indentation of a name whose value are the deeper lines; -1: none

	option []byte // how the last line began, which was an item and a secret's option
	kind   kind   // of its value

	after   after  // what the next line is because of the last one
	delayed []byte // a line with a value whose name may come in the next one

	view  []byte // held without the NULs of UTF-16
	index []int32
}

// Stream begins a text.
func (r *Redactor) Stream() *Stream { return &Stream{redactor: r, block: -1} }

// Midway says that the text begins somewhere in a file: what stands there of a
// line may be a secret whose name is not here, and is left out.
func (s *Stream) Midway() { s.midway = true }

// Next takes a piece and gives what can go on; it is good until the next call.
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

// join avoids copying where nothing was held.
func join(held, line []byte) []byte {
	if len(held) == 0 {
		return line
	}
	return append(held, line...)
}

// End gives the rest.
func (s *Stream) End() []byte {
	s.out = s.out[:0]
	if len(s.held) > 0 {
		s.wholeText(s.held)
		s.held = s.held[:0]
	}
	s.flush()
	return s.out
}

// wholeText takes a line to its end, and keeps one with a value until it is known
// whether the next one has its name.
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
			s.named = 0 // its value has come
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

// hasValueFirst reports whether a line is a field called value: of YAML, JSON or XML.
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

// namesSecret is the kind of the name that is the value of a field called name or
// key; plain if a line is no such field.
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

// line takes a line to its end, or the rest of one.
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

// piece takes of a line as much as can be told of, and gives how much that is.
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
	c := &scan{r: s.redactor, text: body, prev: s.before, begins: !s.inLine, ends: ends, named: s.named, namedKind: s.namedKind, block: -1}
	c.all(s.inside, list)
	done, viewed := len(text), len(view)
	if !ends {
		viewed = c.safe(len(view))
		done = s.offset(viewed, len(text))
	}
	s.write(text[:done], c.spans, viewed)
	s.carry(c, viewed, len(body), ends)
	if viewed > 0 {
		s.before = view[viewed-1]
	}
	s.inLine = true
	return done
}

// carry keeps what the rest of the line, or the next lines, must know.
func (s *Stream) carry(c *scan, viewed, length int, ends bool) {
	s.inside = terminator{}
	for _, sp := range c.spans {
		if sp.open && (!ends && sp.end == viewed || ends && sp.end == length) {
			s.inside = sp.until
		}
	}
	if ends {
		s.after = c.after
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

// look gives the text as it would be without UTF-16's NULs, and makes the index
// back from it where there are any.
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

// offset is where in the text a place of the view is.
func (s *Stream) offset(viewed, length int) int {
	switch {
	case len(s.index) == 0:
		return viewed
	case viewed == len(s.index):
		return length
	}
	return int(s.index[viewed])
}

// write passes the text on, with the mark in the place of each span.
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
		if start < at { // within one that went already
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

// wholeLine handles a line that is a secret because of the lines before it, and
// is whether it has.
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
	case len(body) == indent: // an empty line ends nothing
	case s.block >= 0 && indent > s.block:
		start, secret = indent, true
	case s.public > 0:
		s.public--
	case isBody(bytes.Trim(body, bodyEdges)):
		start, secret = len(body)-len(bytes.TrimLeft(body, bodyEdges)), true
		s.key, s.stray = keyLines, strayLines // its next lines; the first that is none ends it
	default:
		s.block = -1
	}
	if !secret {
		return false
	}
	s.write(text, []span{{start: start, end: end}}, len(body))
	return true
}

// keyLine is which part of a line is a private key's. A container's log has
// something in front of each.
func (s *Stream) keyLine(body []byte) (start, end int, secret bool) {
	s.key--
	if bytes.Contains(body, []byte("-----END")) || bytes.Contains(body, []byte("-----BEGIN")) {
		s.key = 0
		return 0, 0, false
	}
	trimmed := bytes.TrimRight(body, " \t\\\"',")
	start = bytes.LastIndexAny(trimmed, " \t\"'") + 1
	if last := trimmed[start:]; isBase64(last) && (start == indentation(body) || len(last) >= 16 || mixed(last) || bytes.IndexByte(last, '=') > 0) {
		return start, len(trimmed), true
	}
	if s.stray++; s.stray > strayLines && len(trimmed) > 0 {
		s.key = 0
	}
	return 0, 0, false
}

// item is where in a line the value is of the option that the line before was. In a
// list, JSON's or YAML's, the two are items, and each may have a line of its own.
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
