package redact

import "bytes"

// pastLetters returns the start of the quote of a literal with a prefix: N'…' of T-SQL, b'…' and rb"…" of Python, E'…' of
// PostgreSQL, L"…" of C, $'…' of shells, @"…" of C#. It returns `start` if no such literal begins there and ends in this
// text.
func (s *scan) pastLetters(start int) int {
	end := start
	for end < len(s.text) && end < start+2 && (isLetter(s.text[end]) || s.text[end] == '$' || s.text[end] == '@') {
		end++
	}
	if end == start || !isLiteralPrefix(s.text[start:end]) {
		return start
	}
	quoted, slashes := s.quote(end)
	if quoted == 0 {
		if s.entity(end) > 0 {
			return end
		}
		return start
	}
	value := end + slashes + 1
	stop, _ := s.valueEnd(value, terminator{quote: quoted, slashes: slashes})
	if stop == value || stop+slashes >= len(s.text) {
		return start
	}
	return end
}

func isLiteralPrefix(letters []byte) bool {
	var text [2]byte
	for i, c := range letters {
		text[i] = lower(c)
	}
	switch string(text[:len(letters)]) {
	case "n", "b", "u", "r", "f", "l", "e", "br", "rb", "fr", "rf", "ur", "$", "@":
		return true
	}
	return false
}

// bareLiteral redacts a literal behind a word without a sign between them, as in PASSWORD 'secret' of SQL.
func (s *scan) bareLiteral(at, end int) int {
	start := s.pastSpaces(end)
	if start == end || start > end+1 {
		return 0
	}
	start = s.pastLetters(start)
	quoted, slashes := s.quote(start)
	if quoted == 0 {
		return 0
	}
	value, until := start+slashes+1, terminator{quote: quoted, slashes: slashes}
	stop, closed := s.valueEnd(value, until)
	if stop == value || stop == len(s.text) || harmless(s.text[value:stop], password) {
		return 0
	}
	s.add(span{from: at, start: value, end: stop, open: !closed, until: until})
	return stop
}

// changesPasswords redacts the password of user:password that is piped into chpasswd.
func (s *scan) changesPasswords(at int) {
	bar := bytes.LastIndexByte(s.text[:at], '|')
	if bar < 0 {
		return
	}
	text := bytes.TrimRight(s.text[:bar], " ")
	end := len(text)
	if end > 1 && isQuote(text[end-1]) {
		end--
	}
	start := bytes.LastIndexAny(text[:end], " '\"") + 1
	if colon := bytes.IndexByte(text[start:end], ':'); colon > 0 && start+colon+1 < end && text[start+colon+1] != '$' {
		if n := len(s.spans); n == 0 || s.spans[n-1].end <= start+colon+1 {
			s.add(span{from: start, start: start + colon + 1, end: end})
		}
	}
}
