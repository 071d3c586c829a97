package redact

import "bytes"

// linesOfMembers limits the lines of an object that has the name of a secret.
const linesOfMembers = 40

// members is the object in a line that has the name of a secret, as in {"password":{"value":"…"}}. A field
// called value within the object is the secret.
type members struct {
	start, end int // positions in the line; if end is 0, there is no such object
	kind       kind
}

// objectForm is how an object that continues in the next lines ends.
type objectForm int

const (
	noObject  objectForm = iota
	byBraces             // at the brace that closes it
	byIndent             // at a line that is not indented deeper than the name
	bySection            // at the next section of TOML or INI
)

// object is an object with the name of a secret that continues in the next lines.
type object struct {
	form   objectForm
	kind   kind
	indent int // of the name
	depth  int // the open braces
	lines  int // how many lines the object has had
}

// openMembers records that an object or an element with the name of a secret begins at a position. The object may
// end in a later line.
func (s *scan) openMembers(begin, start int, k kind) {
	if k == header {
		k = password
	}
	end, depth := closingBrace(s.text, start, 0)
	s.members = members{start: start, end: end, kind: k}
	switch {
	case depth == 0:
	case s.ends:
		s.object = object{form: byBraces, kind: k, depth: depth, indent: s.lineIndent(begin)}
	default: // the window has only a part of the line
		s.names = append(s.names, nameMark{at: start, lines: 1, kind: k})
	}
}

// openElement records that an XML element with the name of a secret has other elements in its line.
func (s *scan) openElement(begin, start int, k kind) {
	end := begin
	for end < len(s.text) && isToken(s.text[end]) {
		end++
	}
	closing := append([]byte("</"), s.text[begin:end]...)
	s.members = members{start: start, end: len(s.text), kind: k}
	if n := bytes.Index(s.text[start:], closing); n >= 0 {
		s.members.end = start + n
	}
}

// closingBrace returns the position of the brace that closes the object in a text, and the number of braces that
// are still open at the end of the text. depth is the number of open braces before the position `at`.
func closingBrace(text []byte, at, depth int) (end, open int) {
	for ; at < len(text); at++ {
		switch text[at] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return at, 0
			}
		}
	}
	return len(text), depth
}

// memberKind returns the kind of a field that is a member of an object with the name of a secret; plain if the
// field is not the object's value.
func (s *scan) memberKind(begin int, name []byte) kind {
	isText := string(name) == "S" && isQuote(s.before(begin)) // of DynamoDB
	if begin < s.members.start || begin >= s.members.end || !isMember(name) && !isText {
		return plain
	}
	return s.members.kind
}

// isMember reports whether a field with this name holds the value of its object.
func isMember(name []byte) bool {
	if len(name) < len("text") || len(name) > len("default_value") {
		return false
	}
	var text [16]byte
	length := 0
	for _, c := range name {
		if c != '_' && c != '-' {
			text[length] = lower(c)
			length++
		}
	}
	switch string(text[:length]) {
	case "value", "text", "string", "data", "default", "defaultvalue", "plaintext", "stringvalue", "secretvalue", "list":
		return true
	}
	return false
}

// Member reports whether the field `own` of an object holds the secret after which the object is named, as the field
// value of the object adminPassword.
func Member(object, own string) bool {
	return kindOf(object) != plain && (own == "S" || isMember(bytes.TrimLeft([]byte(own), "#_$")))
}

// continued returns the part of a line that belongs to the object that began in an earlier line, and keeps the object
// for the next line if it has not ended.
func (s *Stream) continued(body []byte) members {
	if section := sectionKind(body); section != plain {
		s.object = object{form: bySection, kind: section}
		return members{}
	}
	o := &s.object
	indent := indentation(body)
	if o.form == noObject || indent == len(body) {
		return members{}
	}
	end := len(body)
	switch o.lines++; o.form {
	case byBraces:
		end, o.depth = closingBrace(body, 0, o.depth)
	case byIndent:
		if indent <= o.indent {
			end = 0
		}
	case bySection:
		if body[indent] == '[' {
			end = 0
		}
	}
	found := members{end: end, kind: o.kind}
	if end == 0 || o.form == byBraces && o.depth == 0 || o.lines >= linesOfMembers {
		s.object = object{}
	}
	return found
}

// sectionKind returns the kind of the name of a section in TOML or INI, such as [database.password]; plain if the
// line is no such section.
func sectionKind(body []byte) kind {
	if len(body) < 3 || body[0] != '[' {
		return plain
	}
	name := bytes.Trim(bytes.TrimRight(body, " \t"), "[]")
	if len(name)+2 > len(body) || !isName(name) {
		return plain
	}
	return kindOf(string(name))
}
