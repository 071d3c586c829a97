package redact

import (
	"bytes"
	"strings"
)

// redactValue redacts the value that begins behind the separator, and returns where to continue; 0 if there
// is no value in this line.
func (s *scan) redactValue(begin, start int, k kind) int {
	element := start > 0 && s.text[start-1] == '>' && s.opensElement(begin)
	spaced := start
	for start < len(s.text) && (s.text[start] == ' ' || s.text[start] == '\t') && start-spaced < nearby {
		start++
	}
	start = s.pastTag(begin, spaced, start)
	if element {
		return s.redactElement(begin, start, k)
	}
	if start == len(s.text) {
		s.follows(begin, spaced, k)
		return 0
	}
	switch c := s.text[start]; {
	case c == '{', (c == '&' || c == '@') && start+1 < len(s.text) && s.text[start+1] == '{':
		s.openMembers(begin, start, k)
		return 0 // more names instead of a value
	case c == '(' && s.text[begin] == '-':
		return 0 // a command instead of a value
	case c == '[':
		if next, ok := s.redactList(begin, spaced, start, k); ok {
			return next
		}
	case (c == '|' || c == '>') && s.restIsBlock(start):
		s.block = s.lineIndent(begin)
		return len(s.text)
	case (c == '\\' || c == '`') && start == len(s.text)-1:
		s.after = after{form: afterWord, kind: k}
		return len(s.text)
	case c == 'h' && bytes.HasPrefix(s.text[start:], []byte("hex")), c == 'd' &&
		bytes.HasPrefix(s.text[start:], []byte("dword:")):
		if next := s.redactBinary(begin, start); next > 0 {
			return next
		}
	}
	start = s.pastLetters(start)
	if next, ok := s.redactMultiline(begin, start); ok {
		return next
	}
	return s.redactText(begin, spaced, start, k)
}

// pastTag returns the start of a YAML value, after its tag or anchor.
func (s *scan) pastTag(begin, spaced, start int) int {
	if start == spaced || start == len(s.text) || !s.beginsLine(begin) {
		return start
	}
	rest := s.text[start:]
	if space := bytes.IndexByte(rest, ' '); space > 1 && (rest[0] == '&' && isName(rest[1:space]) ||
		rest[0] == '!' && rest[1] == '!') {
		return start + space + 1
	}
	return start
}

// redactText redacts a value that is a single text in one line.
func (s *scan) redactText(begin, spaced, start int, k kind) int {
	value, until := start, terminator{by: endsPlain}
	if k == header && s.isTOML(begin, spaced, start) && isNumber(bytes.TrimSpace(s.text[start:])) {
		k = password // the number is not the value of a header
	}
	quoted, slashes := s.quote(start)
	around := s.around(begin, spaced)
	switch {
	case quoted != 0 && around.quote == quoted && around.slashes == slashes:
		return 0 // the quote ends the text around the name, so there is no value
	case quoted != 0:
		value, until = start+slashes+1, terminator{quote: quoted, slashes: slashes}
		if s.opensLine(begin) && slashes == 0 {
			until.over, until.deeper = linesOfText, s.lineIndent(begin)
		}
	case s.entity(start) > 0:
		value, until = start+s.entity(start), terminator{by: endsEscaped}
	case s.isLiteral(spaced, start):
		return s.redactLiteral(begin, spaced, start, k)
	case s.tableLiteral(begin, spaced, start) > 0:
		return s.redactTableLiteral(begin, spaced, start, k)
	case k == header:
		until = terminator{by: endsHeader}
		if s.opensLine(begin) {
			until = terminator{by: isLineEnd}
		}
		return s.header(begin, start, until)
	case around.quote != 0:
		until = around
	case s.beginsLine(begin):
		until = terminator{by: isLineEnd}
	}
	end, closed := s.valueEnd(value, until)
	if quoted != 0 && around.quote == 0 && end == len(s.text) {
		around = s.enclosing(begin, quoted)
	}
	if limit, ok := s.limit(value, end, around); ok && quoted != 0 {
		end, closed, until = limit, true, around
	}
	if s.text[spaced-1] == ',' && (quoted != 0 && s.isKey(end+slashes+1) || quoted == 0 && s.isKey(end)) {
		return 0
	}
	if quoted == 0 {
		end = s.trimmed(begin, spaced, value, end, until)
	}
	if k == header && quoted != 0 {
		return s.header(begin, value, until)
	}
	text := s.text[value:end]
	if len(text) == 0 && until.over > 0 && !closed {
		s.add(span{from: begin, start: value, end: end, open: true, until: until, silent: true})
		return end
	}
	if len(text) == 0 || closed && (harmless(text, k) || s.countsTests(begin, text)) ||
		quoted == 0 && start > spaced && s.prose(begin, start, end) {
		return 0
	}
	sp := span{from: begin, start: value, end: end, open: !closed, until: until}
	if quoted == 0 && closed && s.isTOML(begin, spaced, start) && isNumber(text) {
		sp.quote = []byte{'"'}
	}
	s.add(sp)
	if quoted == 0 && start > spaced && s.text[spaced-1] == ':' && s.opensLine(begin) {
		s.after = after{form: afterPlain, indent: s.lineIndent(begin), kind: k}
	}
	return end
}

// limit handles a value in quotes within another quoted text. If the value's own quote ends after
// that text, or never ends, the quote is a part of the text, and limit returns the end of the text.
// After that end, the line must end or a list or an object must continue. If not, the quotes nest
// in another way, and limit returns false.
func (s *scan) limit(value, end int, around terminator) (int, bool) {
	if around.quote == 0 {
		return 0, false
	}
	limit, _ := s.valueEnd(value, around)
	if limit >= end {
		return 0, false
	}
	rest := bytes.TrimLeft(s.text[limit+around.slashes+1:], " \t\r\n")
	return limit, len(rest) == 0 || strings.IndexByte(",:]}", rest[0]) >= 0
}

// enclosing returns the terminator of the quoted text that contains a name, or a zero terminator if
// no quoted text contains it. If quote is a double quote, enclosing considers only texts in single
// quotes. If quote is a single quote, it considers only texts in double quotes.
func (s *scan) enclosing(begin int, quote byte) terminator {
	other := byte('"')
	if quote == other {
		other = '\''
	}
	inside, escaped := false, false
	for _, c := range s.text[:begin] {
		switch {
		case escaped:
			escaped = false
		case c == '\\' && other == '"':
			escaped = true
		case c == other:
			inside = !inside
		}
	}
	if !inside {
		return terminator{}
	}
	return terminator{quote: other}
}

// isKey reports whether the text that ends at this position is a name, since a colon or an equal
// sign follows.
func (s *scan) isKey(at int) bool {
	for at < len(s.text) && s.text[at] == ' ' {
		at++
	}
	return at < len(s.text) && (s.text[at] == ':' || s.text[at] == '=')
}

// isTOML reports whether a name and its value may be a line of TOML. TOML has no bare words as
// values.
func (s *scan) isTOML(begin, spaced, start int) bool {
	return s.isAssigned(spaced, start) && s.opensLine(begin)
}

// isAssigned reports whether a value follows " = ".
func (s *scan) isAssigned(spaced, start int) bool {
	return start == spaced+1 && spaced > 1 && s.text[spaced-1] == '=' && s.text[spaced-2] == ' '
}

// tableLiteral returns the end of a bare number, true or false in an inline table of TOML, or 0
// for any other value. The text behind the value must also be TOML, since in other formats a
// password may contain a comma and continue behind the comma.
func (s *scan) tableLiteral(begin, spaced, start int) int {
	if !s.isAssigned(spaced, start) {
		return 0
	}
	end := start
	for end < len(s.text) && !endsLiteral(s.text[end]) && !isSpace(s.text[end]) {
		end++
	}
	if value := s.text[start:end]; !isNumber(value) && !isOneOf(value, "true", "false") {
		return 0
	}
	rest := bytes.TrimLeft(s.text[end:], " \t")
	if len(rest) == 0 || rest[0] != '}' && !isNextKey(rest) || !s.inInlineTable(begin) {
		return 0
	}
	return end
}

// isNextKey reports whether a text begins with a comma and a key of TOML.
func isNextKey(text []byte) bool {
	key := bytes.TrimLeft(text[1:], " \t")
	assigned := bytes.IndexByte(key, '=')
	return text[0] == ',' && assigned > 0 && bytes.IndexByte(key[:assigned], ',') < 0
}

// inInlineTable reports whether a name is within curly brackets and not in quoted text.
func (s *scan) inInlineTable(begin int) bool {
	if begin > 0 && isQuote(s.text[begin-1]) {
		begin--
	}
	depth, quote, escaped := 0, byte(0), false
	for _, c := range s.text[:begin] {
		switch {
		case escaped:
			escaped = false
		case quote == '"' && c == '\\':
			escaped = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case isQuote(c):
			quote = c
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
	}
	return s.begins && depth > 0 && quote == 0
}

func isNumber(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	for _, c := range text {
		if !isDigit(c) && c != '.' && c != '-' && c != '+' && c != '_' && c != ':' && c != 'e' && c != 'T' && c != 'Z' {
			return false
		}
	}
	return isDigit(text[len(text)-1]) || text[len(text)-1] == 'Z'
}

// trimmed returns the end of a value without quotes. It excludes the characters that belong to the
// text around the value: spaces, a comma, the bracket of a list, a comment.
func (s *scan) trimmed(begin, spaced, value, end int, until terminator) int {
	text := s.text[value:end]
	if until.quote == 0 && spaced < value && s.text[spaced-1] == ':' {
		if comment := bytes.Index(text, []byte(" # ")); comment > 0 {
			text = text[:comment]
		}
	}
	if s.inQuery(begin) {
		if fragment := bytes.IndexByte(text, '#'); fragment > 0 {
			text = text[:fragment]
		}
	}
	if n := len(text); n > 2 && text[n-2] == ' ' && (text[n-1] == '\\' || text[n-1] == '`') {
		text = text[:n-2] // the command continues in the next line
	}
	if open := s.bracketBefore(begin); open != 0 && until.quote == 0 {
		text = withoutBracket(text, open)
	}
	if until.quote == 0 && len(text) > 1 && !s.beginsLine(begin) {
		text = bytes.TrimSuffix(text, []byte(","))
	}
	return value + len(bytes.TrimRight(text, " \t\r"))
}

// bracketBefore returns the bracket that is open at the beginning of a name; 0 if none is.
func (s *scan) bracketBefore(begin int) byte {
	curly, square, round := 0, 0, 0
	for at := begin - 1; at >= max(0, begin-nearby); at-- {
		switch s.text[at] {
		case '}':
			curly++
		case ']':
			square++
		case ')':
			round++
		case '{':
			if curly--; curly < 0 {
				return '{'
			}
		case '[':
			if square--; square < 0 {
				return '['
			}
		case '(':
			if round--; round < 0 {
				return '('
			}
		}
	}
	return 0
}

// withoutBracket returns a value without the closing bracket of the text around the value, and
// without the next field if the value is in a struct that Go printed.
func withoutBracket(text []byte, open byte) []byte {
	if open == '{' {
		text = text[:nextField(text)]
	}
	closes := open + 2
	if open == '(' {
		closes = ')'
	}
	trimmed := bytes.TrimRight(text, ")]},.;")
	if at := bytes.IndexByte(text[len(trimmed):], closes); at >= 0 {
		return text[:len(trimmed)+at]
	}
	return text
}

// nextField returns the start of the next field of a struct, such as ",Name:".
func nextField(text []byte) int {
	for at, c := range text {
		if c != ',' || at+1 == len(text) || text[at+1] < 'A' || text[at+1] > 'Z' {
			continue
		}
		end := at + 1
		for end < len(text) && isWord(text[end]) {
			end++
		}
		if end < len(text) && text[end] == ':' {
			return at
		}
	}
	return len(text)
}

// isLiteral reports whether a value is an unquoted value of JSON or of a list of TOML. The
// character that ends such a value belongs to the document and must stay.
func (s *scan) isLiteral(separated, at int) bool {
	if separated < 2 {
		return false
	}
	switch quote, sign := s.text[separated-2], s.text[separated-1]; {
	case quote == '"' && (sign == ':' || sign == ','):
	case quote == '\'' && sign == ',': // behind a string of TOML in single quotes
	default:
		return false
	}
	end := at
	for end < len(s.text) && (isToken(s.text[end]) || s.text[end] == '.' || s.text[end] == '+') {
		end++
	}
	return end > at && (end == len(s.text) && s.ends || end < len(s.text) && endsLiteral(s.text[end]))
}

// redactLiteral redacts an unquoted value of JSON or TOML, unless it is harmless, such as true or
// null.
func (s *scan) redactLiteral(begin, separated, start int, k kind) int {
	end, _ := s.valueEnd(start, terminator{by: endsLiteral})
	if harmless(s.text[start:end], k) {
		return 0
	}
	quote := separated - 2
	for quote > 0 && s.text[quote-1] == '\\' {
		quote--
	}
	s.add(span{from: begin, start: start, end: end, quote: s.text[quote : separated-1]})
	return end
}

func (s *scan) redactTableLiteral(begin, spaced, start int, k kind) int {
	end := s.tableLiteral(begin, spaced, start)
	if !harmless(s.text[start:end], k) {
		s.add(span{from: begin, start: start, end: end, quote: []byte{'"'}})
	}
	return end
}

func endsLiteral(c byte) bool { return c == ',' || c == '}' || c == ']' }

// header redacts the value of a header, such as Authorization, except the scheme.
func (s *scan) header(begin, start int, until terminator) int {
	end, closed := s.valueEnd(start, until)
	begins := start
	start = s.pastScheme(start, end)
	known := start > begins
	words := bytes.Fields(s.text[start:end])
	switch {
	case len(words) == 0, harmless(words[0], password), s.prose(begin, start, start+len(words[0])):
		return 0
	case !known && len(words) > 2 && bytes.IndexByte(words[0], '=') < 0:
		return 0 // a sentence, not a value
	}
	s.add(span{from: begin, start: start, end: end, open: !closed, until: until})
	return end
}

// pastScheme returns the start of a header's secret, after Bearer or another scheme; without a
// scheme it returns `start`.
func (s *scan) pastScheme(start, end int) int {
	text := s.text[start:end]
	for _, scheme := range []string{"Bearer ", "Basic ", "Digest ", "Negotiate ", "NTLM ",
		"AWS4-HMAC-SHA256 ", "token "} {
		if len(text) > len(scheme) && bytes.EqualFold(text[:len(scheme)], []byte(scheme)) {
			return start + len(scheme)
		}
	}
	return start
}

func endsHeader(c byte) bool { return isLineEnd(c) || c == '"' || c == '\'' || c == '<' }
