package redact

import "bytes"

// span is a part of the text that goes.
type span struct {
	from   int // where that begins which makes it a secret, its name
	start  int
	end    int
	open   bool       // it may go on where the text was cut
	until  terminator // how it ends then
	silent bool       // it began in what was passed on already, with its mark
	quote  []byte     // goes around the mark
}

// terminator is where a value ends.
type terminator struct {
	by      func(byte) bool // nil: not within a value
	quote   byte            // or at this one, behind so many backslashes
	slashes int
	text    string // or at this text
	over    int    // over so many line ends at most
	deeper  int    // and only over lines that are indented deeper; -1: over all
}

// place is where in the text a name stands; none if its end is 0.
type place struct{ begin, end int }

// nameMark says that from there on the value of a secret name may come.
type nameMark struct {
	at, lines int
	kind      kind
}

// pem is what a line says of a PEM block.
type pem int

const (
	pemNothing pem = iota
	pemPrivate     // a private key has begun
	pemPublic      // something else has
	pemEnds
)

// scan finds the secrets of one line, or of a piece of one.
type scan struct {
	r      *Redactor
	text   []byte
	prev   byte // what stands before it
	begins bool // it is the beginning of its line
	ends   bool // it is the end of its line

	spans     []span
	names     []nameMark
	named     int // see Stream
	namedKind kind
	pem       pem    // what the next lines are of
	block     int    // the next lines, if they are deeper, are a secret's
	after     after  // what the next line is because of this one
	listQuote []byte // goes around what stands bare in a list

	lastValue place // a field called value whose name may still come

	barren [MaxPatterns]int // where each pattern is to be tried next
}

// all goes through the text, from within a value or a list if there is one.
func (s *scan) all(inside terminator, list after) {
	at := 0
	if inside.by != nil || inside.quote != 0 || inside.text != "" {
		at = s.goOn(inside)
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

// goOn takes the rest of a value that began before this text, and returns its end.
func (s *scan) goOn(inside terminator) int {
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

// step looks at one place and gives the next to look at.
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
	case c == '}' || c == '/' && at+1 < len(s.text) && s.text[at+1] == '>':
		s.lastValue = place{}
	}
	return at + 1
}

// pattern takes what fits one that a person gave, and gives its end; 0: none does.
func (s *scan) pattern(at int) (end int) {
	for i, p := range s.r.patterns {
		if at < s.barren[i] {
			continue
		}
		n, barren := p.at(s.text[at:])
		if n == 0 {
			s.barren[i] = at + barren
			continue
		}
		end = at + n
		s.add(span{from: at, start: at, end: end, open: end == len(s.text) && p.open(), until: terminator{by: endsStar}})
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

// word looks at a word, and at what it is the name of.
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
	if stop := s.tokenAt(at, end); stop > 0 {
		s.add(span{from: at, start: at, end: stop, open: stop == len(s.text), until: terminator{by: notBase64}})
		if stop == len(s.text) && s.text[at] == 'e' {
			s.after = after{form: afterJWT}
		}
		return stop
	}
	if long := s.azure(at, end); long > 0 {
		return long
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
	if next := s.beside(at, end); next > 0 {
		return next
	}
	if len(s.r.patterns) > 0 {
		return at + 1 // a pattern may begin within a word
	}
	return end
}

func notBase64(c byte) bool { return !isBase64Byte(c) && c != '-' && c != '_' && c != '.' }

func (s *scan) azure(at, end int) int {
	if end-at != 5 || s.text[end-1] != 'Q' || end == len(s.text) || s.text[end] != '~' {
		return 0
	}
	for end < len(s.text) && (isToken(s.text[end]) || s.text[end] == '~' || s.text[end] == '.') {
		end++
	}
	if !azureSecret(s.text[at:end]) {
		return 0
	}
	s.add(span{from: at, start: at, end: end})
	return end
}

// scheme is Bearer or Basic with what follows it, wherever it stands.
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
		return 0 // realm="…": how to get one
	}
	if len(value) < 6 || basic && !credentials(value) || !basic && !mixed(value) {
		return 0
	}
	s.add(span{from: at, start: start, end: stop, open: stop == len(s.text), until: terminator{by: notBase64}})
	return stop
}

// privateKey takes what stands between the two lines of a PEM block, where it is
// a private key and both stand in one line; else the next lines are its.
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

// safe is how much of the text is passed on, where its line goes on: never a part
// of a secret, nor of what may turn out to be one.
func (s *scan) safe(length int) int {
	if length <= 2*overlap {
		return length // hardly any text
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
