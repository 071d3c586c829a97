package redact

import "bytes"

const (
	// linesOfText limits the lines of a text that began with a quote or a tag.
	linesOfText = 200
	// linesAfter limits the lines that can belong to a secret because of an earlier line.
	linesAfter = 1000
)

// afterForm is the meaning that earlier lines give to a line.
type afterForm int

const (
	afterNothing afterForm = iota
	afterName              // the value or values of the name that ended the previous line
	afterItems             // more items of a YAML list
	afterPlain             // the rest of a YAML value, indented deeper
	afterList              // inside the brackets of a list
	afterWord              // the first word is an option's value
	afterBinary            // more bytes of a registry value
	afterJWT               // the rest of a wrapped JWT
)

// after is the meaning that a line gives to the next line.
type after struct {
	form   afterForm
	indent int // of the name
	kind   kind
	depth  int    // of the list
	quote  []byte // the quote to add around the mark of a bare value in the list
	quoted bool   // the name had quotes, as in JSON
	lines  int    // how many lines this state has lasted
}

// follows records that the value of a name must be in the next line, if this line has only the name
// and its separator.
func (s *scan) follows(begin, separated int, k kind) {
	c := s.text[separated-1]
	if c != ':' && c != '=' || !s.ends || !s.opensLine(begin) {
		return
	}
	quoted := separated > 1 && s.text[separated-2] == '"'
	s.after = after{form: afterName, indent: s.lineIndent(begin), kind: k, quoted: quoted}
}

// redactBinary redacts a binary value in a .reg file. The value may continue in the next lines.
func (s *scan) redactBinary(begin, start int) int {
	colon := bytes.IndexByte(s.text[start:min(len(s.text), start+10)], ':')
	if colon < 0 {
		return 0
	}
	start += colon + 1
	if bytes.HasPrefix(s.text[start:], []byte(Mark)) { // redacted before
		end := start + len(Mark)
		if end < len(s.text) && s.text[len(s.text)-1] == '\\' {
			s.after = after{form: afterBinary}
		}
		return end
	}
	end := start
	for end < len(s.text) && (isHex(lower(s.text[end])) || s.text[end] == ',') {
		end++
	}
	if end == start || end < len(s.text) && s.text[end] != '\\' {
		return 0
	}
	if end < len(s.text) {
		s.after = after{form: afterBinary}
	}
	s.add(span{from: begin, start: start, end: end})
	return end
}

// redactMultiline redacts a value that may have several lines: a string of TOML in triple quotes,
// or a here-string of PowerShell. ok is false if no such value begins at the position `start`.
func (s *scan) redactMultiline(begin, start int) (next int, ok bool) {
	for _, quote := range []struct{ opens, closes string }{{"'''", "'''"}, {`"""`, `"""`}, {"@'", "'@"}, {`@"`, `"@`}} {
		if !bytes.HasPrefix(s.text[start:], []byte(quote.opens)) {
			continue
		}
		value := start + len(quote.opens)
		if !s.opensLine(begin) || bytes.IndexByte(s.text[:begin], '-') >= 0 ||
			string(s.text[value:]) == quote.closes[:1] {
			return 0, false
		}
		until := terminator{text: quote.closes, over: linesOfText, deeper: -1}
		end, closed := s.valueEnd(value, until)
		if end > value || !closed {
			s.add(span{from: begin, start: value, end: end, open: !closed, until: until, silent: end == value})
		}
		return end, true
	}
	return 0, false
}

// redactElement redacts the text of an XML element.
func (s *scan) redactElement(begin, start int, k kind) int {
	until := terminator{by: isAngle, deeper: -1}
	const cdata = "<![CDATA["
	if bytes.HasPrefix(s.text[start:], []byte(cdata)) {
		start += len(cdata)
		until = terminator{text: "]]>", deeper: -1}
	}
	tag := bytes.LastIndexByte(s.text[:begin], '<')
	if tag == indentation(s.text) && s.begins {
		until.over = linesOfText
	}
	if start == len(s.text) && until.text == "" { // the element may contain other elements
		s.names = append(s.names, nameMark{at: max(0, begin-1), lines: 3, kind: password})
		s.named, s.namedKind = 3, password
	}
	if start < len(s.text) && s.text[start] == '<' && until.text == "" && !bytes.HasPrefix(s.text[start:], []byte("</")) {
		s.openElement(begin, start, k)
		return 0
	}
	if start < len(s.text) && isQuote(s.text[start]) && tag > 0 && s.text[tag-1] == s.text[start] {
		return 0 // "<password>" is a placeholder
	}
	end, closed := s.valueEnd(start, until)
	if start == end && closed || closed && harmless(s.text[start:end], k) {
		return 0
	}
	if until.over == 0 && !closed || end == len(s.text) && until.over == 0 { // the element may be within quotes
		end, closed = s.valueEnd(start, terminator{by: endsEscapedOrQuoted})
		if !hasText(s.text[start:end]) {
			return 0
		}
	}
	s.add(span{from: begin, start: start, end: end, open: !closed, until: until, silent: start == end})
	return end
}

func endsEscapedOrQuoted(c byte) bool { return c == '<' || isQuote(c) }

func hasText(text []byte) bool {
	for _, c := range text {
		if isWord(c) || c >= 0x80 {
			return true
		}
	}
	return false
}

// afterLine redacts and writes a line that belongs to a secret because of the previous line. It
// returns false, and writes nothing, if no part of the line is secret.
func (s *Stream) afterLine(text, body []byte) bool {
	state := s.after
	s.after = after{}
	indent := indentation(body)
	if state.lines++; state.lines > linesAfter {
		return false
	}
	if indent == len(body) {
		if state.form == afterName || state.form == afterItems {
			s.after = state
		}
		return false
	}
	start, end := s.valueAfter(state, body, indent)
	if start >= end {
		return false
	}
	s.write(text, []span{{start: start, end: end}}, len(body))
	return true
}

// valueAfter returns the position of the secret that the previous line announced, and records the
// meaning of the next line.
func (s *Stream) valueAfter(state after, body []byte, indent int) (start, end int) {
	switch state.form {
	case afterName, afterItems:
		return s.valueOfName(state, body, indent)
	case afterPlain:
		if rest := body[indent:]; indent > state.indent && !isMapping(rest) && bytes.IndexByte(rest, '=') < 0 &&
			!bytes.HasPrefix(rest, []byte("at ")) && rest[0] != '-' && rest[0] != '#' {
			s.after = state
			return indent, len(bytes.TrimRight(body, " \t"))
		}
	case afterWord:
		return wordAt(body, indent)
	case afterBinary:
		end := len(bytes.TrimRight(body, " \t\\"))
		if end < len(body) {
			s.after = state
		}
		return indent, end
	case afterJWT:
		end := len(bytes.TrimRight(body, " \t"))
		if rest := body[indent:end]; len(rest) >= leastNeighbour && isJWTRest(rest) {
			s.after = state
			return indent, end
		}
	}
	return 0, 0
}

// wordAt returns the position of the first word of a line, without its quotes, or 0, 0 if the
// word is an option.
func wordAt(body []byte, start int) (from, to int) {
	if body[start] == '-' {
		return 0, 0
	}
	end := start
	for end < len(body) && !isSpace(body[end]) {
		end++
	}
	if isQuote(body[start]) && end-start > 2 {
		return start + 1, end - 1
	}
	return start, end
}

// valueOfName returns the position of the value whose name ended the previous line.
func (s *Stream) valueOfName(state after, body []byte, indent int) (start, end int) {
	start, end = indent, len(bytes.TrimRight(body, " \t,"))
	item := bytes.HasPrefix(body[start:], []byte("- "))
	if indent > state.indent && (isMapping(body[start:end]) || body[start] == '{') {
		s.object = object{form: byIndent, kind: state.kind, indent: state.indent}
		if state.kind == header {
			s.object.kind = password
		}
	}
	switch {
	case item && indent >= state.indent:
		start += len("- ")
		start += indentation(body[start:])
	case indent <= state.indent && !(state.quoted && body[start] == '"'), state.form == afterItems && !item:
		return 0, 0
	}
	if start >= end || isMapping(body[start:end]) || body[start] == '{' || body[start] == '[' || body[start] == '-' ||
		body[start] == '<' {
		return 0, 0
	}
	s.after = state
	s.after.form = afterPlain
	if item {
		s.after.form = afterItems
	}
	if state.quoted {
		s.after = after{}
	}
	if quote := body[start]; isQuote(quote) && end-start > 1 {
		start++
		if close := bytes.LastIndexByte(body[start:end], quote); close >= 0 {
			end = start + close
		}
	}
	if start < end && harmless(body[start:end], state.kind) {
		return 0, 0
	}
	return start, end
}

// isMapping reports whether a YAML text is a name and a colon, with or without a value.
func isMapping(text []byte) bool {
	if isQuote(text[0]) {
		end := bytes.IndexByte(text[1:], text[0])
		return end >= 0 && len(text) > end+2 && text[end+2] == ':'
	}
	colon := bytes.IndexByte(text, ':')
	return colon >= 0 && (colon+1 == len(text) || text[colon+1] == ' ')
}

// isJWTRest reports whether the whole text may be a part of a JWT.
func isJWTRest(text []byte) bool {
	hex := true
	for _, c := range text {
		if !isToken(c) && c != '.' {
			return false
		}
		hex = hex && isHex(c)
	}
	return !hex && mixed(text)
}
