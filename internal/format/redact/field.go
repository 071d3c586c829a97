package redact

// reference handles a value that is itself the name of another value: {"name": "DB_PASSWORD",
// "value": "…"} in JSON, YAML and XML, or -Name DB_PASSWORD -Value … in a command.
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
		if s.redactLastValue(k) {
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

// referred returns the start of the name that is the value of this field.
func (s *scan) referred(begin int, name []byte, b behind) (start int, ok bool) {
	if n := len(name); n > 5 && n != len("ParameterKey") || lower(name[n-1]) != 'e' && lower(name[n-1]) != 'y' &&
		lower(name[0]) != 'v' && name[0] != 'N' {
		return 0, false
	}
	switch c := s.text[b.at]; {
	case isOneOf(name, "name", "key", "Name", "Key", "N", "ParameterKey") && (c == ':' || c == '='):
		return b.at + 1, true
	case isOneOf(name, "name", "key", "Name", "Key") && c == '>' && s.opensElement(begin):
		return b.at + 1, true
	case isOneOf(name, "-Name", "-name"), isOneOf(name, "v", "V") && s.slashOption(begin):
		return b.at, b.spaces > 0
	}
	return 0, false
}

// redactLastValue redacts the value that precedes the field with its name, and reports whether
// there is such a value.
func (s *scan) redactLastValue(k kind) (taken bool) {
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
	end := s.redactValue(value.begin, start, k)
	s.names, s.after, s.block = s.names[:marks], after, block
	for _, sp := range later {
		if sp.start >= end {
			s.spans = append(s.spans, sp)
		}
	}
	return true
}

// element redacts the text of an element that has the name of a secret in an attribute, as in <Data
// Name='Password'>…</Data>.
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

// isNamed reports whether a field with this name, such as value, holds the secret that an earlier
// field has named.
func (s *scan) isNamed(name []byte) bool {
	return s.named > 0 && (isValueName(name) || isOneOf(name, "string", "String", "data", "Data"))
}

func isValueName(name []byte) bool {
	if len(name) > len("-Value") && len(name) != len("ParameterValue") {
		return false
	}
	return isOneOf(name, "value", "Value", "-Value", "-value", "d", "D", "ParameterValue")
}
