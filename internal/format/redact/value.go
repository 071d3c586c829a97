package redact

import "bytes"

// nearby limits the distance between a name and its value.
const nearby = 256

// value redacts the value of the name that ends with the word from `at` to `end`, and returns where
// to continue; 0 if there is no value.
func (s *scan) value(at, end int) int {
	b := s.behind(end)
	if b.at == len(s.text) || !s.mayName(at, b) {
		return 0
	}
	if s.text[end] == '%' {
		return s.percentValue(at, end)
	}
	begin := s.nameBegin(at)
	name := s.text[begin:end]
	if string(name) == "Private-Lines" { // a key file of PuTTY
		s.pem = pemPrivate
		return end
	}
	if next := s.reference(begin, name, b); next > 0 {
		return next
	}
	if next := s.commandOption(begin, end, b); next > 0 {
		return next
	}
	k := s.nameKind(begin, end)
	if k == plain {
		if isValueName(name) {
			s.lastValue = place{begin: begin, end: end}
		}
		return 0
	}
	start, ok := s.separator(begin, end, b)
	if !ok {
		return 0
	}
	return s.redactValue(begin, start, k)
}

// nameKind returns the kind of a name at its place in the text.
func (s *scan) nameKind(begin, end int) kind {
	name := s.text[begin:end]
	k := kindOf(string(name))
	if k != plain {
		if isOneOf(name, "PASS") && s.before(begin) == ' ' { // the result of a test
			return plain
		}
		if bytes.HasSuffix(name, []byte("v1.Secret")) { // the type of an object
			return plain
		}
		if isOneOf(name, "sig") && !s.inQuery(begin) || isOneOf(name, "X-Amz-Credential") {
			return plain
		}
		return k
	}
	switch {
	case isOneOf(name, "key", "Key", "KEY"):
		return kindOf(string(s.text[s.wordBefore(begin):end]))
	case s.isNamed(name):
		return s.namedKind
	case s.members.end > 0 && s.memberKind(begin, name) != plain:
		return s.members.kind
	case s.inQuery(begin) && isSignature(name):
		return key
	case isOneOf(name, "MAC") && bytes.HasSuffix(s.text[:begin], []byte("Private-")):
		return key
	}
	return k
}

// inQuery reports whether a name is a parameter of a URL.
func (s *scan) inQuery(begin int) bool { c := s.before(begin); return c == '?' || c == '&' }

func isSignature(name []byte) bool {
	return isOneOf(name, "sig", "Signature", "X-Amz-Signature", "X-Goog-Signature", "sentry_key")
}

// mayName reports, from the characters around a word, whether the word may be the name of a value.
// It quickly excludes most words.
func (s *scan) mayName(at int, b behind) bool {
	switch s.text[b.at] {
	case ':', '=', '>':
		return true
	case '%':
		return b.spaces == 0
	case '{':
		return b.spaces == 1
	case ',':
		return b.quoted
	case 'R':
		if b.spaces > 0 {
			return true
		}
	}
	switch s.before(at) {
	case '-':
		return b.spaces > 0 || b.quoted || s.text[at] == 'p' || s.text[at] == 'P'
	case '/', '<':
		return b.spaces > 0
	}
	return b.spaces > 0 && at == 0 && s.begins || b.spaces == 1 && (s.sets(at) || b.quoted)
}

// sets reports whether the word at a position is the name of the variable in a command such as
// setx NAME value.
func (s *scan) sets(at int) bool {
	before := bytes.TrimRight(s.text[max(0, at-32):at], " ")
	if len(before) == at || at < 5 {
		return false
	}
	if n := len(before); n > 2 && before[n-2] == '/' {
		before = bytes.TrimRight(before[:n-2], " ")
	}
	return bytes.HasSuffix(before, []byte("setx")) || bytes.HasSuffix(before, []byte("configure set"))
}

// behind is the text that follows a name: its closing quote, and spaces.
type behind struct {
	at     int // the first character behind the quote and the spaces
	quoted bool
	spaces int
}

func (s *scan) behind(end int) behind {
	b := behind{at: end}
	if end == len(s.text) {
		return b
	}
	if c := s.text[end]; c == '=' || c == ':' || c == '.' || c == '-' || c == '/' || c == '_' {
		return b
	}
	slashes := end
	for slashes < len(s.text) && s.text[slashes] == '\\' && slashes < end+8 {
		slashes++
	}
	if slashes < len(s.text) && (s.text[slashes] == '"' || s.text[slashes] == '\'') {
		b.at, b.quoted = slashes+1, true
	} else if n := s.entity(end); n > 0 {
		b.at, b.quoted = end+n, true
	}
	for b.at < len(s.text) && (s.text[b.at] == ' ' || s.text[b.at] == '\t') && b.spaces < nearby {
		b.at++
		b.spaces++
	}
	return b
}

// entity returns the length of a quote in XML's notation, or 0 if there is none at this position.
func (s *scan) entity(at int) int {
	for _, quote := range []string{"&quot;", "&apos;", "&#34;", "&#39;"} {
		if at < len(s.text) && s.text[at] == '&' && bytes.HasPrefix(s.text[at:], []byte(quote)) {
			return len(quote)
		}
	}
	return 0
}

// nameBegin returns the beginning of a name of several parts, such as client-key-data.
func (s *scan) nameBegin(at int) int {
	for at > 0 && (isToken(s.text[at-1]) || s.text[at-1] == '.') {
		at--
	}
	return at
}

func (s *scan) wordBefore(begin int) int {
	if begin < 2 || s.text[begin-1] != ' ' || !isLetter(s.text[begin-2]) {
		return begin
	}
	at := begin - 1
	for at > 0 && isLetter(s.text[at-1]) {
		at--
	}
	return at
}

// separator returns the start of a name's value. The value may follow = or :, be the text of an
// XML element, be the argument of a command's option, or be in a column or the output of reg.exe.
// The bool is false if the name has no value.
func (s *scan) separator(begin, end int, b behind) (int, bool) {
	option := s.text[begin] == '-' || s.slashOption(begin)
	switch c := s.text[b.at]; {
	case c == ':' || c == '=':
		at := b.at + 1
		for at < len(s.text) && at < b.at+3 && (s.text[at] == '=' || s.text[at] == '>') {
			at++
		}
		return at, true
	case s.opensElement(begin):
		return s.elementText(end)
	case c == '{' && b.spaces == 1: // text of protobuf, or a block of terraform
		return b.at, true
	case c == ',' && (option || s.calls(begin)):
		return b.at + 1, true
	case b.spaces > 0 && bytes.HasPrefix(s.text[b.at:], []byte("REG_")):
		at := b.at
		for at < len(s.text) && !isSpace(s.text[at]) {
			at++
		}
		return at, true
	case option && b.spaces > 0 && c != '-' && c != '/':
		word, _, _ := bytes.Cut(s.text[b.at:], []byte(" "))
		return b.at, !bytes.HasPrefix(word, []byte("HTTP/")) && !mentioned(word)
	case b.spaces == 1 && s.sets(begin), b.quoted && b.spaces == 1 && isQuote(c) && s.optionText(begin):
		return b.at, true
	case b.spaces > 0 && begin == 0 && isDirective(s.text[:end]):
		return b.at, true
	case b.spaces > 1 && begin == 0 && s.begins && !b.quoted:
		return b.at, s.isColumn(end, b.at)
	}
	return 0, false
}

// slashOption reports whether a name is an option in the form of Windows' programs, such as /name.
func (s *scan) slashOption(begin int) bool {
	return begin > 1 && s.text[begin-1] == '/' && (isSpace(s.text[begin-2]) || isQuote(s.text[begin-2]))
}

// optionText reports whether a name is an option in quotes, as in a list of arguments that Go
// printed.
func (s *scan) optionText(begin int) bool {
	return s.text[begin] == '-' && isQuote(s.before(begin))
}

// calls reports whether a name is the first argument of a function that sets a
// variable.
func (s *scan) calls(begin int) bool {
	before := bytes.TrimRight(s.text[max(0, begin-32):begin], "'\" \\")
	return bytes.HasSuffix(before, []byte("SetEnvironmentVariable("))
}

// isDirective reports whether a name precedes its value without any sign
// between them, as in the configuration of Redis and LDAP.
func isDirective(name []byte) bool {
	return isOneOf(name, "requirepass", "masterauth", "bindpw", "rootpw")
}

// isColumn reports whether a name and its value are a line of a table of two columns, and not the
// table's head.
func (s *scan) isColumn(end, at int) bool {
	if bytes.IndexByte(s.text[:end], '_') < 0 {
		return false
	}
	value := s.text[at:]
	return !isSpace(value[0]) && bytes.IndexByte(bytes.TrimSpace(value), ' ') < 0
}

// opensElement reports whether a name is the name of an XML element.
func (s *scan) opensElement(begin int) bool {
	if s.before(begin) == ':' { // with a namespace
		at := begin - 1
		for at > 0 && isWord(s.text[at-1]) {
			at--
		}
		return at > 0 && at < begin-1 && s.text[at-1] == '<'
	}
	return s.before(begin) == '<'
}

// elementText returns the start of the text of the element whose name ends at the position `end`,
// or false if there is no such text.
func (s *scan) elementText(end int) (int, bool) {
	rest := s.text[end:min(len(s.text), end+nearby)]
	close := bytes.IndexByte(rest, '>')
	if close < 0 || close > 0 && (rest[close-1] == '/' || !isSpace(rest[0])) {
		return 0, false
	}
	return end + close + 1, true
}

// restIsBlock reports whether the | or > at a position announces a YAML value in the lines that
// follow.
func (s *scan) restIsBlock(at int) bool {
	return len(bytes.Trim(s.text[at+1:], "+-0123456789 \t\r")) == 0
}

// lineIndent returns the indentation of a name. For a name in an item of a list, this is the
// position behind the item's dash.
func (s *scan) lineIndent(begin int) int {
	indent := indentation(s.text[:begin])
	for bytes.HasPrefix(s.text[indent:begin], []byte("- ")) {
		indent += len("- ")
		indent += indentation(s.text[indent:begin])
	}
	return indent
}

// quote returns the quote that begins a value, and the number of backslashes before it; 0, 0 if
// the value has no quote.
func (s *scan) quote(at int) (quote byte, slashes int) {
	for at+slashes < len(s.text) && s.text[at+slashes] == '\\' && slashes < 8 {
		slashes++
	}
	if at+slashes < len(s.text) {
		if c := s.text[at+slashes]; c == '"' || c == '\'' {
			return c, slashes
		}
	}
	return 0, 0
}

// around returns the terminator of the quoted text that begins with a name, as in "NAME=value".
// The result is empty if the name is not at the beginning of a quoted text.
func (s *scan) around(begin, separated int) (until terminator) {
	name := bytes.TrimRight(s.text[begin:max(begin, separated-1)], " \t=:")
	if n := len(name); n > 0 && isQuote(name[n-1]) || !s.beginsLine(begin) && s.text[separated-1] != '=' {
		return until
	}
	at := begin
	for s.beginsLine(begin) && at > 0 && (s.text[at-1] == ' ' || s.text[at-1] == '-') {
		at--
	}
	if at == 0 || !isQuote(s.text[at-1]) {
		return until
	}
	found := terminator{quote: s.text[at-1]}
	for at -= 2; at >= 0 && s.text[at] == '\\' && found.slashes < 8; at-- {
		found.slashes++
	}
	if end, _ := s.valueEnd(separated, found); end == len(s.text) && s.ends || at >= 0 &&
		(isWord(s.text[at]) || s.text[at] == found.quote) {
		return until // the quote does not begin a text
	}
	return found
}

func isQuote(c byte) bool { return c == '"' || c == '\'' }

// valueEnd returns where a value ends; the result `closed` is false if the text ended first.
func (s *scan) valueEnd(begin int, until terminator) (end int, closed bool) {
	at := begin
	if until.text != "" {
		if n := bytes.Index(s.text[begin:], []byte(until.text)); n >= 0 {
			return begin + n, true
		}
		return len(s.text), false
	}
	if until.quote == 0 {
		for ; at < len(s.text); at++ {
			if !until.by(s.text[at]) {
				continue
			}
			if s.text[at] != '&' || !s.escapes(at) {
				return s.unescaped(begin, at), true
			}
		}
		return at, s.ends && until.over == 0
	}
	slashes := 0
	for ; at < len(s.text); at++ {
		switch c := s.text[at]; {
		case c == '\\':
			slashes++
			continue
		case c == until.quote && s.closes(until, slashes):
			return at - until.slashes, true
		}
		slashes = 0
	}
	return at, s.ends && until.over == 0
}

// unescaped returns the end of a value. If a quote follows the value, the backslashes that escape
// the quote are not part of the value.
func (s *scan) unescaped(begin, end int) int {
	if s.text[end] == '"' || s.text[end] == '\'' {
		return begin + len(bytes.TrimRight(s.text[begin:end], `\`))
	}
	return end
}

// closes reports whether a quote with this number of backslashes before it ends the value.
func (s *scan) closes(until terminator, slashes int) bool {
	if until.slashes == 0 {
		return slashes%2 == 0 || until.quote == '\''
	}
	return slashes == until.slashes
}

// escapes reports whether an XML entity at a place stands for a character
// inside a value.
func (s *scan) escapes(at int) bool {
	for _, c := range []string{"&amp;", "&lt;", "&gt;"} {
		if bytes.HasPrefix(s.text[at:], []byte(c)) {
			return true
		}
	}
	return false
}

func endsPlain(c byte) bool {
	return isSpace(c) || c == ';' || c == '&' || c == '"' || c == '\'' || c == '<' || c == '>'
}

func isAngle(c byte) bool { return c == '<' }

func isLineEnd(c byte) bool { return c == '\r' || c == '\n' }

func endsEscaped(c byte) bool { return c == '<' || c == '&' }

// opensLine reports whether a name is the first text of its line, as in a configuration, and does
// not begin a longer text in quotes.
func (s *scan) opensLine(begin int) bool {
	if !s.begins {
		return false
	}
	before := bytes.TrimLeft(s.text[:begin], " \t\xef\xbb\xbf\xfe\xff")
	before = bytes.TrimPrefix(before, []byte("- "))
	switch len(before) {
	case 0:
		return true
	case 1:
		return before[0] == '$' || isQuote(before[0]) && s.closesName(begin, before[0])
	}
	return false
}

// closesName reports whether the quote before a name is closed behind it.
func (s *scan) closesName(begin int, quote byte) bool {
	at := begin
	for at < len(s.text) && (isToken(s.text[at]) || s.text[at] == '.' || s.text[at] == '/') {
		at++
	}
	return at < len(s.text) && s.text[at] == quote
}

// beginsLine reports whether a name begins its line, so that its value continues to the end of
// the line.
func (s *scan) beginsLine(begin int) bool {
	if !s.begins {
		return false
	}
	before := bytes.TrimLeft(s.text[:begin], " \t-\"'$\xef\xbb\xbf\xfe\xff")
	return len(before) == 0 || string(before) == "set " || string(before) == "export " || string(before) == "env:"
}

func isOneOf(name []byte, names ...string) bool {
	for _, n := range names {
		if string(name) == n {
			return true
		}
	}
	return false
}
