package redact

import "bytes"

// nearby bounds how far a value is looked for behind its name.
const nearby = 256

// value takes the value of the name that ends with the word from at to end, and
// gives where to go on; 0: there is none.
func (s *scan) value(at, end int) int {
	b := s.behind(end)
	if b.at == len(s.text) || !s.mayName(at, b) {
		return 0
	}
	begin := s.nameBegin(at)
	name := s.text[begin:end]
	if next := s.reference(name, b); next > 0 {
		return next
	}
	k := kindOf(string(name))
	switch {
	case k == plain && bytes.EqualFold(name, []byte("key")):
		k = kindOf(string(s.text[s.wordBefore(begin):end]))
	case k == plain && s.isNamed(name):
		k = password
	case k == plain && (bytes.Equal(name, []byte("-u")) || bytes.Equal(name, []byte("--user"))):
		return s.userFlag(begin, b)
	}
	if string(name) == "sig" && s.before(begin) != '?' && s.before(begin) != '&' {
		k = plain
	}
	if k == plain {
		return 0
	}
	start, ok := s.separator(begin, end, b)
	if !ok {
		return 0
	}
	return s.take(begin, start, k)
}

// mayName spares most words a closer look.
func (s *scan) mayName(at int, b behind) bool {
	switch s.text[b.at] {
	case ':', '=', '>':
		return true
	case ',':
		return b.quoted
	case 'R':
		return b.spaces > 0
	}
	return s.before(at) == '-' && b.spaces > 0
}

// behind is what follows a name: its closing quote, and spaces.
type behind struct {
	at     int // the first that is neither
	quoted bool
	spaces int
}

func (s *scan) behind(end int) behind {
	b := behind{at: end}
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

// entity is the length of a quote as XML writes it.
func (s *scan) entity(at int) int {
	for _, quote := range []string{"&quot;", "&apos;", "&#34;", "&#39;"} {
		if at < len(s.text) && s.text[at] == '&' && bytes.HasPrefix(s.text[at:], []byte(quote)) {
			return len(quote)
		}
	}
	return 0
}

// nameBegin goes back over the parts of a name: client-key-data.
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

// separator is where the value begins that belongs to a name: behind = or :, in
// an element, behind an option of a command, in what reg.exe prints.
func (s *scan) separator(begin, end int, b behind) (int, bool) {
	option := s.text[begin] == '-'
	switch c := s.text[b.at]; {
	case c == ':' || c == '=':
		at := b.at + 1
		for at < len(s.text) && at < b.at+3 && (s.text[at] == '=' || s.text[at] == '>') {
			at++
		}
		return at, true
	case c == '>':
		return b.at + 1, s.before(begin) == '<'
	case c == ',' && option:
		return b.at + 1, true
	case b.spaces > 0 && bytes.HasPrefix(s.text[b.at:], []byte("REG_")):
		at := b.at
		for at < len(s.text) && !isSpace(s.text[at]) {
			at++
		}
		return at, true
	case option && b.spaces > 0 && c != '-':
		return b.at, true
	}
	return 0, false
}

// take takes the value that begins behind the separator.
func (s *scan) take(begin, start int, k kind) int {
	element := start > 0 && s.text[start-1] == '>' && s.before(begin) == '<'
	spaced := start
	for start < len(s.text) && (s.text[start] == ' ' || s.text[start] == '\t') && start-spaced < nearby {
		start++
	}
	if start == len(s.text) {
		return 0
	}
	if c := s.text[start]; c == '{' || c == '[' {
		return 0 // no value but more names
	}
	if c := s.text[start]; (c == '|' || c == '>') && s.restIsBlock(start) {
		s.block = s.lineIndent(begin)
		return len(s.text)
	}
	value, until := start, terminator{by: endsPlain}
	quoted, slashes := s.quote(start)
	around := s.around(begin, spaced)
	switch {
	case quoted != 0 && around.quote == quoted && around.slashes == slashes:
		return 0 // there is no value
	case quoted != 0:
		value, until = start+slashes+1, terminator{quote: quoted, slashes: slashes}
	case s.entity(start) > 0:
		value, until = start+s.entity(start), terminator{by: endsEscaped}
	case element:
		until = terminator{by: isAngle}
	case s.isLiteral(spaced, start):
		return s.takeLiteral(begin, spaced, start, k)
	case k == header:
		return s.header(begin, start, terminator{by: endsHeader})
	case around.quote != 0:
		until = around
	case s.leads(begin):
		until = terminator{by: isLineEnd}
	}
	end, closed := s.valueEnd(value, until)
	text := s.text[value:end]
	if quoted == 0 {
		text = bytes.TrimRight(text, " \t\r")
		end = value + len(text)
	}
	if k == header && quoted != 0 {
		return s.header(begin, value, until)
	}
	if len(text) == 0 || closed && harmless(text, k) || quoted == 0 && start > spaced && s.prose(begin, start, end) {
		return 0
	}
	s.add(span{from: begin, start: value, end: end, open: !closed, until: until})
	return end
}

// isLiteral is whether a value is JSON's without quotes: what ends it is JSON's too,
// and stays.
func (s *scan) isLiteral(separated, at int) bool {
	if separated < 2 || s.text[separated-2] != '"' || s.text[separated-1] != ':' && s.text[separated-1] != ',' {
		return false
	}
	end := at
	for end < len(s.text) && (isToken(s.text[end]) || s.text[end] == '.' || s.text[end] == '+') {
		end++
	}
	return end > at && (end == len(s.text) && s.ends || end < len(s.text) && endsLiteral(s.text[end]))
}

// takeLiteral takes a number, or what else is no true, false or null.
func (s *scan) takeLiteral(begin, separated, start int, k kind) int {
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

func endsLiteral(c byte) bool { return c == ',' || c == '}' || c == ']' }

// restIsBlock is whether a YAML value is in the lines that follow.
func (s *scan) restIsBlock(at int) bool {
	return len(bytes.Trim(s.text[at+1:], "+-0123456789 \t\r")) == 0
}

func (s *scan) lineIndent(begin int) int { return indentation(s.text[:begin]) }

// quote is the quote that begins a value, and how many backslashes it has.
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

// around is the end of a text in quotes that begins with a name: "NAME=value".
func (s *scan) around(begin, separated int) (until terminator) {
	name := bytes.TrimRight(s.text[begin:max(begin, separated-1)], " \t")
	if n := len(name); n > 0 && isQuote(name[n-1]) || !s.leads(begin) && s.text[separated-1] != '=' {
		return until
	}
	at := begin
	for s.leads(begin) && at > 0 && (s.text[at-1] == ' ' || s.text[at-1] == '-') {
		at--
	}
	if at == 0 || !isQuote(s.text[at-1]) {
		return until
	}
	found := terminator{quote: s.text[at-1]}
	for at -= 2; at >= 0 && s.text[at] == '\\' && found.slashes < 8; at-- {
		found.slashes++
	}
	if end, _ := s.valueEnd(separated, found); end == len(s.text) && s.ends || at >= 0 && isWord(s.text[at]) {
		return until // it begins no text
	}
	return found
}

func isQuote(c byte) bool { return c == '"' || c == '\'' }

// valueEnd is where a value ends; closed is false where the text did before it.
func (s *scan) valueEnd(begin int, until terminator) (end int, closed bool) {
	at := begin
	if until.quote == 0 {
		for ; at < len(s.text); at++ {
			if !until.by(s.text[at]) {
				continue
			}
			if s.text[at] != '&' || !s.escapes(at) {
				return s.unescaped(begin, at), true
			}
		}
		return at, s.ends
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
	return at, s.ends
}

// unescaped is the end of a value before the backslashes of a quote that ends it.
func (s *scan) unescaped(begin, end int) int {
	if s.text[end] == '"' || s.text[end] == '\'' {
		return begin + len(bytes.TrimRight(s.text[begin:end], `\`))
	}
	return end
}

// closes is whether a quote behind so many backslashes is the value's end.
func (s *scan) closes(until terminator, slashes int) bool {
	if until.slashes == 0 {
		return slashes%2 == 0 || until.quote == '\''
	}
	return slashes == until.slashes
}

// escapes is a character that XML writes with &, within a value.
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
func isAngle(c byte) bool     { return c == '<' }
func isLineEnd(c byte) bool   { return c == '\r' || c == '\n' }
func endsEscaped(c byte) bool { return c == '<' || c == '&' }

// leads is whether a name begins its line: its value then goes to the end of it.
func (s *scan) leads(begin int) bool {
	if !s.begins {
		return false
	}
	before := bytes.TrimLeft(s.text[:begin], " \t-\"'$\xef\xbb\xbf\xfe\xff")
	return len(before) == 0 || string(before) == "set " || string(before) == "export " || string(before) == "env:"
}

// prose is a sentence that speaks of a token: "invalid token: signature is …".
func (s *scan) prose(begin, start, end int) bool {
	if s.leads(begin) || end+1 >= len(s.text) || s.text[end] != ' ' || !isLetter(s.text[end+1]) {
		return false
	}
	for i, c := range s.text[start:end] {
		if !isLetter(c) || i > 0 && c < 'a' {
			return false
		}
	}
	return true
}

// header takes what stands behind Authorization, but for the scheme.
func (s *scan) header(begin, start int, until terminator) int {
	end, closed := s.valueEnd(start, until)
	text, known := s.text[start:end], false
	for _, scheme := range []string{"Bearer ", "Basic ", "Digest ", "Negotiate ", "NTLM ", "AWS4-HMAC-SHA256 "} {
		if len(text) > len(scheme) && bytes.EqualFold(text[:len(scheme)], []byte(scheme)) {
			start += len(scheme)
			known = true
		}
	}
	words := bytes.Fields(s.text[start:end])
	switch {
	case len(words) == 0, harmless(words[0], password), s.prose(begin, start, start+len(words[0])):
		return 0
	case !known && len(words) > 2 && bytes.IndexByte(words[0], '=') < 0:
		return 0 // a sentence
	}
	s.add(span{from: begin, start: start, end: end, open: !closed, until: until})
	return end
}

func endsHeader(c byte) bool { return isLineEnd(c) || c == '"' || c == '\'' || c == '<' }

// userFlag takes the password of curl's -u user:password.
func (s *scan) userFlag(begin int, b behind) int {
	end, closed := s.valueEnd(b.at, terminator{by: endsPlain})
	colon := bytes.IndexByte(s.text[b.at:end], ':')
	if b.spaces == 0 || colon < 2 || colon+1 == end-b.at {
		return 0
	}
	s.add(span{from: begin, start: b.at + colon + 1, end: end, open: !closed, until: terminator{by: endsPlain}})
	return end
}

// reference handles a value that is itself a name: {"name": "DB_PASSWORD",
// "value": "…"} in JSON, YAML and XML.
func (s *scan) reference(name []byte, b behind) int {
	if !isOneOf(name, "name", "key", "Name", "Key") || s.text[b.at] != ':' && s.text[b.at] != '=' {
		return 0
	}
	start := b.at + 1
	for start < len(s.text) && s.text[start] == ' ' {
		start++
	}
	quoted, slashes := s.quote(start)
	until := terminator{by: endsName}
	if quoted != 0 {
		start += slashes + 1
		until = terminator{quote: quoted, slashes: slashes}
	}
	end, _ := s.valueEnd(start, until)
	lines := 0
	if kindOf(string(s.text[start:end])) != plain {
		lines = 3
	}
	s.names = append(s.names, nameMark{at: start, lines: lines})
	s.named = lines
	for at := start; lines > 0 && at < end; { // the name itself may fit a pattern
		if at = max(at+1, s.pattern(at)); at > end {
			return at
		}
	}
	if after := end + 1; lines > 0 && quoted != 0 && after < len(s.text) && s.text[after] == '>' {
		return s.element(start, after+1)
	}
	if lines > 0 {
		return end
	}
	return 0
}

// element is <Data Name='Password'>…</Data>.
func (s *scan) element(begin, start int) int {
	end, closed := s.valueEnd(start, terminator{by: isAngle})
	if end > start && !harmless(s.text[start:end], password) {
		s.add(span{from: begin, start: start, end: end, open: !closed, until: terminator{by: isAngle}})
	}
	return end
}

func endsName(c byte) bool { return isSpace(c) || c == ',' || c == '"' || c == '\'' || c == '}' }

// isNamed is whether this is the value of a name that came before.
func (s *scan) isNamed(name []byte) bool {
	return s.named > 0 && isOneOf(name, "value", "Value", "string", "String", "data", "Data")
}

func isOneOf(name []byte, names ...string) bool {
	for _, n := range names {
		if string(name) == n {
			return true
		}
	}
	return false
}
