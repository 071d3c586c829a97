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
}

// nameMark says that from there on the value of a secret name may come.
type nameMark struct{ at, lines int }

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

	spans []span
	names []nameMark
	named int // see Stream
	pem   pem // what the next lines are of
	block int // the next lines, where they stand deeper, are a secret's

	barren [MaxPatterns]int // where each pattern is to be tried next
}

// all goes through the text, from within a value where that is not nil.
func (s *scan) all(inside terminator) {
	at := 0
	if inside.by != nil || inside.quote != 0 {
		end, closed := s.valueEnd(0, inside)
		if end > 0 {
			s.spans = append(s.spans, span{end: end, open: !closed, until: inside, silent: true})
		}
		at = end
	}
	for at < len(s.text) {
		at = s.step(at)
	}
}

// step looks at one place and gives the next to look at.
func (s *scan) step(at int) int {
	if end := s.pattern(at); end > 0 {
		return end
	}
	switch c := s.text[at]; {
	case isWord(c) && !isWord(s.before(at)):
		return s.word(at)
	case c == '-' && bytes.HasPrefix(s.text[at:], []byte("-----BEGIN ")):
		return s.privateKey(at)
	case c == '-' && bytes.HasPrefix(s.text[at:], []byte("-----END ")):
		s.pem = pemEnds
		return at + len("-----END ")
	case c == ':' && bytes.HasPrefix(s.text[at:], []byte("://")):
		return s.userinfo(at)
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
	sp.open = sp.open && !s.ends
	s.spans = append(s.spans, sp)
}

// word looks at a word, and at what it is the name of.
func (s *scan) word(at int) int {
	if end := s.tokenAt(at); end > 0 {
		s.add(span{from: at, start: at, end: end, open: end == len(s.text), until: terminator{by: notBase64}})
		return end
	}
	end := at
	for end < len(s.text) && isWord(s.text[end]) {
		end++
	}
	if long := s.azure(at, end); long > 0 {
		return long
	}
	if next := s.scheme(at, end); next > 0 {
		return next
	}
	if next := s.value(at, end); next > 0 {
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

// userinfo takes the password of scheme://user:password@host.
func (s *scan) userinfo(at int) int {
	const slashes = len("://")
	start, colon, sign := at+slashes, -1, -1
	for i := start; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '@':
			sign = i
		case c == ':' && colon < 0:
			colon = i
		case isSpace(c) || c == '/' || c == '?' || c == '#' || c == '"' || c == '\'' || c == '<' || c == '>':
			i = len(s.text)
		}
	}
	if sign < 0 || colon < 0 || colon > sign || colon+1 == sign {
		return start
	}
	s.add(span{from: at, start: colon + 1, end: sign})
	return sign
}

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
