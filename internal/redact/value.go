package redact

import "bytes"

// nearby bounds how far a value is looked for behind its name.
const nearby = 256

// value takes the value of the name that ends with the word from at to end, and
// returns where to go on; 0: there is none.
func (s *scan) value(at, end int) int {
	b := s.behind(end)
	if b.at == len(s.text) || !s.mayName(at, b) {
		return 0
	}
	begin := s.nameBegin(at)
	name := s.text[begin:end]
	if string(name) == "Private-Lines" { // PuTTY's
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
	return s.take(begin, start, k)
}

// nameKind is the kind of a name where it stands.
func (s *scan) nameKind(begin, end int) kind {
	name := s.text[begin:end]
	k := kindOf(string(name))
	if k != plain {
		if isOneOf(name, "PASS") && s.before(begin) == ' ' { // of a test
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

// mayName spares most words a closer look.
func (s *scan) mayName(at int, b behind) bool {
	switch s.text[b.at] {
	case ':', '=', '>':
		return true
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

// sets reports whether the word at a place is the variable of a command that sets
// one: setx NAME value.
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

// behind is what follows a name: its closing quote, and spaces.
type behind struct {
	at     int // the first that is neither
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
// an element, behind an option of a command, in what reg.exe prints, in a column.
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
	case c == ',' && (option || s.calls(begin)):
		return b.at + 1, true
	case b.spaces > 0 && bytes.HasPrefix(s.text[b.at:], []byte("REG_")):
		at := b.at
		for at < len(s.text) && !isSpace(s.text[at]) {
			at++
		}
		return at, true
	case option && b.spaces > 0 && c != '-' && c != '/':
		return b.at, !bytes.HasPrefix(s.text[b.at:], []byte("HTTP/"))
	case b.spaces == 1 && s.sets(begin), b.quoted && b.spaces == 1 && isQuote(c) && s.optionText(begin):
		return b.at, true
	case b.spaces > 0 && begin == 0 && isDirective(s.text[:end]):
		return b.at, true
	case b.spaces > 1 && begin == 0 && s.begins && !b.quoted:
		return b.at, s.isColumn(end, b.at)
	}
	return 0, false
}

// slashOption reports whether a name is an option as Windows' programs have them.
func (s *scan) slashOption(begin int) bool {
	return begin > 1 && s.text[begin-1] == '/' && (isSpace(s.text[begin-2]) || isQuote(s.text[begin-2]))
}

// optionText reports whether a name is an option in quotes: Go's print of a list.
func (s *scan) optionText(begin int) bool {
	return s.text[begin] == '-' && isQuote(s.before(begin))
}

// calls reports whether a name is the first argument of a function that sets a
// variable.
func (s *scan) calls(begin int) bool {
	before := bytes.TrimRight(s.text[max(0, begin-32):begin], "'\" \\")
	return bytes.HasSuffix(before, []byte("SetEnvironmentVariable("))
}

// isDirective reports whether a name stands before its value without any sign
// between them, in the configuration of Redis and LDAP.
func isDirective(name []byte) bool {
	return isOneOf(name, "requirepass", "masterauth", "bindpw", "rootpw")
}

// isColumn reports whether a name with its value are a line of a table of two
// columns, and not the head of one.
func (s *scan) isColumn(end, at int) bool {
	if bytes.IndexByte(s.text[:end], '_') < 0 {
		return false
	}
	value := s.text[at:]
	return !isSpace(value[0]) && bytes.IndexByte(bytes.TrimSpace(value), ' ') < 0
}

// opensElement reports whether a name is that of an XML element.
func (s *scan) opensElement(begin int) bool {
	if s.before(begin) == ':' { // of a namespace
		at := begin - 1
		for at > 0 && isWord(s.text[at-1]) {
			at--
		}
		return at > 0 && at < begin-1 && s.text[at-1] == '<'
	}
	return s.before(begin) == '<'
}

// elementText is where the text of the element begins whose name ends here.
func (s *scan) elementText(end int) (int, bool) {
	rest := s.text[end:min(len(s.text), end+nearby)]
	close := bytes.IndexByte(rest, '>')
	if close < 0 || close > 0 && (rest[close-1] == '/' || !isSpace(rest[0])) {
		return 0, false
	}
	return end + close + 1, true
}

// take takes the value that begins behind the separator.
func (s *scan) take(begin, start int, k kind) int {
	element := start > 0 && s.text[start-1] == '>' && s.opensElement(begin)
	spaced := start
	for start < len(s.text) && (s.text[start] == ' ' || s.text[start] == '\t') && start-spaced < nearby {
		start++
	}
	start = s.pastTag(begin, spaced, start)
	if element {
		return s.takeElement(begin, start, k)
	}
	if start == len(s.text) {
		s.follows(begin, spaced, k)
		return 0
	}
	switch c := s.text[start]; {
	case c == '{', c == '(' && s.text[begin] == '-':
		return 0 // no value but more names, or a command
	case c == '[':
		if next, ok := s.takeList(begin, spaced, start, k); ok {
			return next
		}
	case (c == '|' || c == '>') && s.restIsBlock(start):
		s.block = s.lineIndent(begin)
		return len(s.text)
	case (c == '\\' || c == '`') && start == len(s.text)-1:
		s.after = after{form: afterWord, kind: k}
		return len(s.text)
	case c == 'h' && bytes.HasPrefix(s.text[start:], []byte("hex")), c == 'd' && bytes.HasPrefix(s.text[start:], []byte("dword:")):
		if next := s.takeBinary(begin, start); next > 0 {
			return next
		}
	}
	if next, ok := s.takeLong(begin, start); ok {
		return next
	}
	return s.takeOne(begin, spaced, start, k)
}

// pastTag is where a value of YAML begins behind its tag or anchor.
func (s *scan) pastTag(begin, spaced, start int) int {
	if start == spaced || start == len(s.text) || !s.leads(begin) {
		return start
	}
	rest := s.text[start:]
	if space := bytes.IndexByte(rest, ' '); space > 1 && (rest[0] == '&' && isName(rest[1:space]) || rest[0] == '!' && rest[1] == '!') {
		return start + space + 1
	}
	return start
}

// takeOne takes a value that is one text in one line.
func (s *scan) takeOne(begin, spaced, start int, k kind) int {
	value, until := start, terminator{by: endsPlain}
	quoted, slashes := s.quote(start)
	around := s.around(begin, spaced)
	switch {
	case quoted != 0 && around.quote == quoted && around.slashes == slashes:
		return 0 // there is no value
	case quoted != 0:
		value, until = start+slashes+1, terminator{quote: quoted, slashes: slashes}
		if s.opensLine(begin) && slashes == 0 {
			until.over, until.deeper = linesOfText, s.lineIndent(begin)
		}
	case s.entity(start) > 0:
		value, until = start+s.entity(start), terminator{by: endsEscaped}
	case s.isLiteral(spaced, start):
		return s.takeLiteral(begin, spaced, start, k)
	case k == header:
		until = terminator{by: endsHeader}
		if s.opensLine(begin) {
			until = terminator{by: isLineEnd}
		}
		return s.header(begin, start, until)
	case around.quote != 0:
		until = around
	case s.leads(begin):
		until = terminator{by: isLineEnd}
	}
	end, closed := s.valueEnd(value, until)
	if quoted != 0 && s.text[spaced-1] == ',' && s.isKey(end+slashes+1) {
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
	if len(text) == 0 || closed && harmless(text, k) || quoted == 0 && start > spaced && s.prose(begin, start, end) {
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

// isKey reports whether a text in quotes that ends here is a name.
func (s *scan) isKey(at int) bool {
	for at < len(s.text) && s.text[at] == ' ' {
		at++
	}
	return at < len(s.text) && s.text[at] == ':'
}

// isTOML reports whether a name and its value may be a line of TOML, in which no
// bare word is a value.
func (s *scan) isTOML(begin, spaced, start int) bool {
	return start == spaced+1 && spaced > 1 && s.text[spaced-1] == '=' && s.text[spaced-2] == ' ' && s.opensLine(begin)
}

func isNumber(text []byte) bool {
	for _, c := range text {
		if !isDigit(c) && c != '.' && c != '-' && c != '+' && c != '_' && c != ':' && c != 'e' && c != 'T' && c != 'Z' {
			return false
		}
	}
	return isDigit(text[len(text)-1]) || text[len(text)-1] == 'Z'
}

// trimmed is the end of a value without quotes, without what belongs to the text
// around it: spaces, a comma, the bracket of a list, a comment.
func (s *scan) trimmed(begin, spaced, value, end int, until terminator) int {
	text := s.text[value:end]
	if until.quote == 0 && spaced < value && s.text[spaced-1] == ':' {
		if comment := bytes.Index(text, []byte(" #")); comment > 0 {
			text = text[:comment]
		}
	}
	if s.inQuery(begin) {
		if fragment := bytes.IndexByte(text, '#'); fragment > 0 {
			text = text[:fragment]
		}
	}
	if n := len(text); n > 2 && text[n-2] == ' ' && (text[n-1] == '\\' || text[n-1] == '`') {
		text = text[:n-2] // the command goes on in the next line
	}
	if open := s.bracketBefore(begin); open != 0 && until.quote == 0 {
		text = text[:closing(text, open, s.text[spaced-1] == ':')]
	}
	if until.quote == 0 && len(text) > 1 && !s.leads(begin) {
		text = bytes.TrimSuffix(text, []byte(","))
	}
	return value + len(bytes.TrimRight(text, " \t\r"))
}

// bracketBefore is the bracket that is open where a name begins; 0: none.
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

// closing is where a value ends that stands within a bracket.
func closing(text []byte, open byte, named bool) int {
	depth := 0
	for i, c := range text {
		switch {
		case c == open:
			depth++
		case c == open+2 || open == '(' && c == ')':
			if depth--; depth < 0 {
				return i
			}
		case c == ',' && named && open != '(' && depth == 0:
			return i
		}
	}
	return len(text)
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
	name := bytes.TrimRight(s.text[begin:max(begin, separated-1)], " \t=:")
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

// opensLine reports whether a name is the first of its line, as in a configuration,
// and no text in quotes.
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

// closesName reports whether the quote before a name ends behind it.
func (s *scan) closesName(begin int, quote byte) bool {
	at := begin
	for at < len(s.text) && (isToken(s.text[at]) || s.text[at] == '.' || s.text[at] == '/') {
		at++
	}
	return at < len(s.text) && s.text[at] == quote
}

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
	begins := start
	start = s.pastScheme(start, end)
	known := start > begins
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

// pastScheme is where the secret of a header begins, behind Bearer and the like.
func (s *scan) pastScheme(start, end int) int {
	text := s.text[start:end]
	for _, scheme := range []string{"Bearer ", "Basic ", "Digest ", "Negotiate ", "NTLM ", "AWS4-HMAC-SHA256 ", "token "} {
		if len(text) > len(scheme) && bytes.EqualFold(text[:len(scheme)], []byte(scheme)) {
			return start + len(scheme)
		}
	}
	return start
}

func endsHeader(c byte) bool { return isLineEnd(c) || c == '"' || c == '\'' || c == '<' }

// reference handles a value that is itself a name: {"name": "DB_PASSWORD",
// "value": "…"} in JSON, YAML and XML, -Name DB_PASSWORD -Value … in commands.
func (s *scan) reference(begin int, name []byte, b behind) int {
	start, ok := s.referred(begin, name, b)
	if !ok {
		return 0
	}
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
	lines, k := 0, kindOf(string(s.text[start:end]))
	if k != plain {
		lines = 3
		if s.takeLastValue(k) {
			lines = 0
		}
	}
	s.names = append(s.names, nameMark{at: start, lines: lines, kind: k})
	s.named, s.namedKind = lines, k
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

// referred is where the name begins that is the value of this one.
func (s *scan) referred(begin int, name []byte, b behind) (start int, ok bool) {
	if n := len(name); n > 5 || lower(name[n-1]) != 'e' && lower(name[n-1]) != 'y' && lower(name[0]) != 'v' && name[0] != 'N' {
		return 0, false
	}
	switch c := s.text[b.at]; {
	case isOneOf(name, "name", "key", "Name", "Key", "N") && (c == ':' || c == '='):
		return b.at + 1, true
	case isOneOf(name, "name", "key", "Name", "Key") && c == '>' && s.opensElement(begin):
		return b.at + 1, true
	case isOneOf(name, "-Name", "-name"), isOneOf(name, "v", "V") && s.slashOption(begin):
		return b.at, b.spaces > 0
	}
	return 0, false
}

// takeLastValue takes the value that came before its name, and reports whether there
// was one.
func (s *scan) takeLastValue(k kind) (taken bool) {
	value := s.lastValue
	s.lastValue = place{}
	if value.end == 0 {
		return false
	}
	b := s.behind(value.end)
	start, ok := 0, false
	if b.at < len(s.text) {
		start, ok = s.separator(value.begin, value.end, b)
	}
	if !ok {
		return false
	}
	before := 0
	for before < len(s.spans) && s.spans[before].start < start {
		before++
	}
	later := append([]span(nil), s.spans[before:]...)
	s.spans = s.spans[:before]
	marks, after, block := len(s.names), s.after, s.block
	end := s.take(value.begin, start, k)
	s.names, s.after, s.block = s.names[:marks], after, block
	for _, sp := range later {
		if sp.start >= end {
			s.spans = append(s.spans, sp)
		}
	}
	return true
}

// element is <Data Name='Password'>…</Data>.
func (s *scan) element(begin, start int) int {
	end, closed := s.valueEnd(start, terminator{by: isAngle})
	if end > start && !harmless(s.text[start:end], password) {
		s.add(span{from: begin, start: start, end: end, open: !closed, until: terminator{by: isAngle}})
	}
	return end
}

func endsName(c byte) bool {
	return isSpace(c) || c == '<' || c == ',' || c == '"' || c == '\'' || c == '}'
}

// isNamed reports whether this is the value of a name that came before.
func (s *scan) isNamed(name []byte) bool {
	return s.named > 0 && (isValueName(name) || isOneOf(name, "string", "String", "data", "Data"))
}

func isValueName(name []byte) bool {
	if len(name) > len("-Value") {
		return false
	}
	return isOneOf(name, "value", "Value", "-Value", "-value", "d", "D")
}

func isOneOf(name []byte, names ...string) bool {
	for _, n := range names {
		if string(name) == n {
			return true
		}
	}
	return false
}
