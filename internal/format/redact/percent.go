package redact

import "bytes"

// encoded returns the length of a character in the encoding of URLs at a position, or 0. The character may be encoded
// twice, as in %2522.
func (s *scan) encoded(at int, characters string) int {
	if at >= len(s.text) || s.text[at] != '%' {
		return 0
	}
	digits := at + 1
	if bytes.HasPrefix(s.text[digits:], []byte("25")) {
		digits += 2
	}
	if digits+2 > len(s.text) {
		return 0
	}
	high, low := hexDigit(s.text[digits]), hexDigit(s.text[digits+1])
	if high < 0 || low < 0 || bytes.IndexByte([]byte(characters), byte(high<<4|low)) < 0 {
		return 0
	}
	return digits + 2 - at
}

func hexDigit(c byte) int {
	switch c = lower(c); {
	case isDigit(c):
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// percentValue redacts the value of a name in a text in the encoding of URLs, such as %22password%22%3A%22…%22 or
// password%3D…%26. It returns the end of the value, or 0 if the name is not a secret's.
func (s *scan) percentValue(at, end int) int {
	k := kindOf(string(s.withoutDigits(at, end)))
	if k == plain {
		return 0
	}
	quote := s.encoded(end, `"'`)
	sign := s.pastEncodedSpaces(end + quote)
	length := s.encoded(sign, ":=")
	if length == 0 {
		if quote == 0 || sign >= len(s.text) || s.text[sign] != ':' && s.text[sign] != '=' {
			return 0
		}
		length = 1
	}
	start := s.pastEncodedSpaces(sign + length)
	quote = s.encoded(start, `"'`)
	stop := s.percentEnd(start+quote, quote > 0)
	start += quote
	if start >= stop || harmless(s.text[start:stop], k) {
		return 0
	}
	s.add(span{from: at, start: start, end: stop, open: stop == len(s.text), until: terminator{by: endsEncoded}})
	return stop
}

func endsEncoded(c byte) bool { return endsPlain(c) || c == '%' }

// withoutDigits returns a name without the digits of the encoded character before it: of "%22password", the word is
// "22password".
func (s *scan) withoutDigits(at, end int) []byte {
	if s.before(at) != '%' {
		return s.text[s.nameBegin(at):end]
	}
	if at+4 < end && bytes.HasPrefix(s.text[at:], []byte("25")) {
		at += 2
	}
	return s.text[min(end, at+2):end]
}

func (s *scan) pastEncodedSpaces(at int) int {
	for at < len(s.text) {
		n := s.encoded(at, " \t\n")
		if n == 0 && s.text[at] == '+' {
			n = 1
		}
		if n == 0 {
			return at
		}
		at += n
	}
	return at
}

// percentEnd returns the end of a value in the encoding of URLs: its quote, or the end of its field.
func (s *scan) percentEnd(at int, quoted bool) int {
	for at < len(s.text) && !endsPlain(s.text[at]) {
		if n := s.encoded(at, `\`); quoted && n > 0 {
			at += n + max(1, s.encoded(at+n, `"'\`))
			continue
		}
		if s.encoded(at, `"'`) > 0 || !quoted && s.encoded(at, "&,};") > 0 {
			return at
		}
		at++
	}
	return min(at, len(s.text))
}

// percentURL redacts the password of user:password@host in a URL whose "://" is encoded at a position. It returns where
// to continue.
func (s *scan) percentURL(at int) int {
	start := at
	for _, c := range []string{":", "/", "/"} {
		n := s.encoded(start, c)
		if n == 0 {
			return at + 1
		}
		start += n
	}
	begin := 0
	for i := start; i < len(s.text) && !endsURL(s.text[i]) && s.encoded(i, "/?#&\"'") == 0; i++ {
		if n := s.encoded(i, ":"); n > 0 && begin == 0 {
			begin = i + n
		}
		if begin > 0 && begin < i && s.encoded(i, "@") > 0 {
			s.add(span{from: at, start: begin, end: i})
			return i
		}
	}
	return start
}
