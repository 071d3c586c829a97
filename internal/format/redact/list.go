package redact

import "bytes"

// redactList redacts the values of a list of JSON, TOML or YAML, or of a list that Go printed. ok
// is false if the value at the position `start` is not a list.
func (s *scan) redactList(begin, spaced, start int, k kind) (next int, ok bool) {
	inner := start + 1
	if bytes.HasPrefix(s.text[start:], []byte("[]string{")) {
		inner = start + len("[]string{")
	}
	rest := bytes.TrimLeft(s.text[inner:], " \t")
	closed := bytes.ContainsAny(rest, "]}")
	if !closed && len(rest) > 0 && !isQuote(rest[0]) && rest[0] != '[' && rest[0] != '\\' {
		return 0, false // a value that begins with a bracket
	}
	s.listQuote = nil
	if s.text[spaced-1] == '=' && s.opensLine(begin) { // TOML has no bare words
		s.listQuote = []byte{'"'}
	}
	if at := spaced - 1; at > 0 && at < len(s.text) && (s.text[at] == ':' || s.text[at] == ',') && s.text[at-1] == '"' {
		quote := at - 1
		for quote > 0 && s.text[quote-1] == '\\' {
			quote--
		}
		s.listQuote = s.text[quote:at]
	}
	return s.list(begin, inner, 1, k), true
}

// list redacts the values of a list from a place inside it, and returns where it ends.
func (s *scan) list(begin, at, depth int, k kind) int {
	for at < len(s.text) {
		switch c := s.text[at]; {
		case isSpace(c) || c == ',':
			at++
		case c == '[':
			depth++
			at++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return at + 1
			}
			at++
		case c == '{' || c == '#':
			return at // more names instead of values, or a comment
		default:
			next := s.listed(begin, at, k)
			if next <= at {
				return max(at, 1)
			}
			at = next
		}
	}
	if s.ends && s.opensLine(begin) {
		s.after = after{form: afterList, kind: k, depth: depth, quote: append([]byte(nil), s.listQuote...)}
	}
	return at
}

// listed redacts one value of a list and returns its end; it returns 0 if the text at this
// position is not a value, such as a name.
func (s *scan) listed(begin, at int, k kind) int {
	if k == header {
		k = password
	}
	quoted, slashes := s.quote(at)
	entity := s.entity(at)
	switch {
	case quoted != 0 && s.withinText(at, quoted, slashes):
		return 0
	case quoted != 0:
		start, until := at+slashes+1, terminator{quote: quoted, slashes: slashes}
		end, closed := s.valueEnd(start, until)
		after := end + slashes + 1
		if end == len(s.text) && s.ends {
			return 0 // the quote does not open a text
		}
		if closed && after < len(s.text) && s.text[after] == ':' {
			return 0
		}
		s.addListed(begin, start, end, !closed, until, k)
		return min(len(s.text), after)
	case entity > 0:
		start, until := at+entity, terminator{by: endsEscaped}
		end, closed := s.valueEnd(start, until)
		s.addListed(begin, start, end, !closed, until, k)
		return end + max(1, s.entity(end))
	}
	end := at
	for end < len(s.text) && !endsListed(s.text[end]) {
		end++
	}
	if end == at || end < len(s.text) && (s.text[end] == ':' || s.text[end] == '=') {
		return 0
	}
	if !isOneOf(s.text[at:end], "Bearer", "Basic", "Negotiate", "Digest", "Token", "token") {
		if !harmless(s.text[at:end], k) {
			s.add(span{from: begin, start: at, end: end, quote: s.listQuote})
		}
	}
	return end
}

// withinText reports whether the quote at a place ends a text that began earlier.
func (s *scan) withinText(at int, quote byte, slashes int) bool {
	if !s.begins || quote != '"' {
		return false // undecidable without the line's beginning; an apostrophe is often not a quote
	}
	odd, before := false, 0
	for _, c := range s.text[:at] {
		switch {
		case c == '\\':
			before++
			continue
		case c == quote && before == slashes:
			odd = !odd
		}
		before = 0
	}
	return odd
}

func endsListed(c byte) bool {
	return isSpace(c) || c == ',' || c == ']' || c == '}' || c == '"' || c == '\'' || c == '\\'
}

// addListed adds a value in quotes, without the scheme of a header.
func (s *scan) addListed(begin, start, end int, open bool, until terminator, k kind) {
	start = s.pastScheme(start, end)
	if start < end && (open || !harmless(s.text[start:end], k)) {
		s.add(span{from: begin, start: start, end: end, open: open, until: until})
	}
}
