package redact

import "bytes"

// span is a part of the text that is redacted.
type span struct {
	from   int // where the reason for the redaction begins, such as the name of the secret
	start  int
	end    int
	open   bool       // the secret may continue behind the end of this text
	until  terminator // if open is set, where the secret ends
	silent bool       // the mark was already written for an earlier part of the secret
	quote  []byte     // surrounds the mark
}

// terminator describes the end of a value: a character, a quote or a text. The zero value means that
// there is no value to end.
type terminator struct {
	by      func(byte) bool // the value ends at a character for which this function returns true
	quote   byte            // the value ends at this quote if the method closes returns true
	slashes int
	text    string // the value ends at this text
	over    int    // the value continues over at most this many line ends
	deeper  int    // the value continues only into lines that are indented deeper than this; -1: into any line
}

// place is the position of a name in the text. If end is 0, there is no name.
type place struct{ begin, end int }

// nameMark is the position of a secret's name. lines is the number of lines, including this one,
// in which the value may follow.
type nameMark struct {
	at, lines int
	kind      kind
}

// pem is the marker of a PEM block in a line.
type pem int

const (
	pemNothing pem = iota
	pemPrivate     // a private key has begun
	pemPublic      // another block has begun
	pemEnds
)

// scan finds the secrets of one line, or of a piece of a line.
type scan struct {
	r      *Redactor
	text   []byte
	prev   byte // the character before the text
	begins bool // the text is at the beginning of its line
	ends   bool // the text ends its line

	spans     []span
	names     []nameMark
	named     int // see Stream
	namedKind kind
	pem       pem    // the marker of a PEM block in this text
	block     int    // the next lines, if indented deeper than this, belong to a secret; -1: none do
	after     after  // the meaning of the next line
	listQuote []byte // the quote to add around the mark of a bare value in a list

	lastValue place   // a field called value whose name has not followed yet
	members   members // the object of this line that has the name of a secret
	object    object  // the same, if it continues in the next lines

	nextTry [MaxPatterns]int // positions at which the patterns are tried next
}

// all scans the text. If the text begins inside a value, `inside` describes the end of that value;
// if it begins inside a list, `list` describes that list.
func (s *scan) all(inside terminator, list after) {
	at := 0
	if inside.by != nil || inside.quote != 0 || inside.text != "" {
		at = s.finishValue(inside)
	}
	if list.form == afterList {
		s.listQuote = list.quote
		at = s.list(0, 0, list.depth, list.kind)
	}
	patterns := len(s.r.patterns) > 0
	for at < len(s.text) {
		if patterns {
			if end := s.pattern(at); end > 0 {
				at = end
				continue
			}
		}
		at = s.step(at)
	}
}

// finishValue redacts the rest of a value that began before this text, and returns its
// end.
func (s *scan) finishValue(inside terminator) int {
	start := 0
	if s.begins {
		start = indentation(s.text)
		if start < len(s.text) && inside.deeper >= 0 && start <= inside.deeper {
			return 0
		}
	}
	end, closed := s.valueEnd(start, inside)
	if end > start || !closed {
		s.add(span{start: start, end: end, open: !closed, until: inside, silent: !s.begins || end == start})
	}
	return end
}

// step examines the text at one position and returns the next position to examine.
func (s *scan) step(at int) int {
	switch c := s.text[at]; {
	case isWord(c):
		return s.word(at)
	case c == '-' && bytes.HasPrefix(s.text[at:], []byte("-----BEGIN ")):
		return s.privateKey(at)
	case c == '-' && bytes.HasPrefix(s.text[at:], []byte("-----END ")):
		s.pem = pemEnds
		return at + len("-----END ")
	case c == ':' && bytes.HasPrefix(s.text[at:], []byte("://")):
		return s.url(at)
	case c == '@':
		return s.tcpAddress(at)
	case c == '~':
		return s.azure(at)
	case c == '%':
		return s.percentURL(at)
	case c == '}' || c == '/' && at+1 < len(s.text) && s.text[at+1] == '>':
		s.lastValue = place{}
	}
	return at + 1
}

// pattern redacts text that matches a user's pattern, and returns its end; 0 if
// none matches.
func (s *scan) pattern(at int) (end int) {
	for i, p := range s.r.patterns {
		if at < s.nextTry[i] {
			continue
		}
		n, skip := p.at(s.text[at:])
		if n == 0 {
			s.nextTry[i] = at + skip
			continue
		}
		end = at + n
		s.add(span{from: at, start: at, end: end, open: end == len(s.text) && p.open(),
			until: terminator{by: endsStar}})
		return end
	}
	return 0
}

func (s *scan) before(at int) byte {
	if at == 0 {
		return s.prev
	}
	return s.text[at-1]
}

func (s *scan) add(sp span) {
	sp.open = sp.open && (!s.ends || sp.until.over > 0)
	s.spans = append(s.spans, sp)
}

// word examines the word at a position. If the word is the name of a value, it also examines that
// value. It returns the next position to examine.
func (s *scan) word(at int) int {
	end := at + 1
	for end < len(s.text) && isWord(s.text[end]) {
		end++
	}
	if isWord(s.before(at)) {
		if len(s.r.patterns) > 0 {
			return at + 1
		}
		return end
	}
	if next := s.dump(at, end); next > 0 {
		return next
	}
	if stop := s.tokenAt(at, end); stop > 0 {
		s.add(span{from: at, start: at, end: stop, open: stop == len(s.text), until: terminator{by: notBase64}})
		if stop == len(s.text) && s.text[at] == 'e' {
			s.after = after{form: afterJWT}
		}
		return stop
	}
	if next := s.scheme(at, end); next > 0 {
		return next
	}
	if next := s.commandWord(at, end); next > 0 {
		return next
	}
	if next := s.value(at, end); next > 0 {
		return next
	}
	if next := s.redactNeighbour(at, end); next > 0 {
		return next
	}
	if len(s.r.patterns) > 0 {
		return at + 1 // a pattern may begin inside a word
	}
	return end
}

func notBase64(c byte) bool { return !isBase64Byte(c) && c != '-' && c != '_' && c != '.' }

// azure redacts the secret of an Azure application, whose Q~ ends at the position `at`: three characters and a digit
// before it, 31 to 34 behind it. Any of them but the digit may be a sign, so it may begin in front of a word.
func (s *scan) azure(at int) int {
	start := at - len("abc8Q")
	if start < 0 || s.text[at-1] != 'Q' || !isDigit(s.text[at-2]) || start > 0 && isAzure(s.text[start-1]) {
		return at + 1
	}
	end := at + 1
	for end < len(s.text) && isAzure(s.text[end]) {
		end++
	}
	if n := end - at - 1; n < 31 || n > 35 || !isAzure(s.text[start]) || !isAzure(s.text[start+1]) || !isAzure(s.text[start+2]) {
		return at + 1
	}
	if n := len(s.spans); n == 0 || s.spans[n-1].end <= start {
		s.add(span{from: start, start: start, end: end})
	}
	return end
}

func isAzure(c byte) bool { return isToken(c) || c == '~' || c == '.' }

// scheme redacts the value of Bearer or Basic, anywhere in the line.
func (s *scan) scheme(at, end int) int {
	if n := end - at; n != len("basic") && n != len("bearer") {
		return 0
	}
	start := end
	for start < len(s.text) && s.text[start] == ' ' {
		start++
	}
	name := s.text[at:end]
	basic := bytes.EqualFold(name, []byte("basic"))
	if start == end || !basic && !bytes.EqualFold(name, []byte("bearer")) {
		return 0
	}
	stop := start
	for stop < len(s.text) && !notBase64(s.text[stop]) && s.text[stop] != '=' {
		stop++
	}
	for stop < len(s.text) && s.text[stop] == '=' {
		stop++
	}
	value := s.text[start:stop]
	if stop < len(s.text) && s.text[stop] == '"' && bytes.HasSuffix(value, []byte("=")) && !basic {
		return 0 // realm="…" only describes how to get a secret
	}
	if len(value) < 6 || basic && !credentials(value) || !basic && !mixed(value) {
		return 0
	}
	s.add(span{from: at, start: start, end: stop, open: stop == len(s.text), until: terminator{by: notBase64}})
	return stop
}

// privateKey redacts the text between the two marker lines of a PEM block with a private key. If
// the second marker line is not in this text, the next lines belong to the key.
func (s *scan) privateKey(at int) int {
	const begin = len("-----BEGIN ")
	label := s.text[at+begin : min(len(s.text), at+begin+maxName)]
	dashes := bytes.Index(label, []byte("-----"))
	if dashes < 0 {
		return at + begin
	}
	start := at + begin + dashes + len("-----")
	if !bytes.Contains(label[:dashes], []byte("PRIVATE KEY")) {
		s.pem = pemPublic
		return start
	}
	end := start + max(0, bytes.Index(s.text[start:], []byte("-----END")))
	closed := end > start
	if !closed {
		end = len(s.text)
		s.pem = pemPrivate
	}
	if len(bytes.Trim(s.text[start:end], " \t\\nr|>\"'")) > 0 {
		s.add(span{from: at, start: start, end: end, open: !closed, until: terminator{by: isDash}})
	}
	return end
}

func isDash(c byte) bool { return c == '-' }

// safe returns how many bytes of the text can be passed on before the rest of the line is known.
// The bytes end neither within a secret nor within a text that may become one.
func (s *scan) safe(length int) int {
	if length <= 2*overlap {
		return length // most of the window was NUL bytes, so this is hardly text
	}
	cut := length - overlap
	for i := cut; i > length/2; i-- {
		if c := s.text[i-1]; isSpace(c) || c == ',' || c == ';' || c == '}' || c == ']' {
			cut = i
			break
		}
	}
	for _, sp := range s.spans {
		if sp.from < cut && cut < sp.end {
			cut = sp.end
		}
	}
	return cut
}
