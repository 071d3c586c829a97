package document

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/redact"
)

// deepestCut limits the depth of values in a large document that are themselves too large to be parsed. Each level
// reads the text once more.
const deepestCut = 32

// redactLarge redacts a JSON document that is too large to be parsed at once. It divides the
// members of a large list or object into groups, and parses one group at a time. The parameter
// `most` is the maximum size of a group, in bytes. For any other document, redactLarge returns
// false, and `clean` is the result of the scan of its lines. redactLarge does not detect that an
// object larger than a group is a Secret, but no Secret can be that large.
func redactLarge(r *redact.Redactor, text []byte, most int) (clean []byte, ok bool) {
	clean = r.Bytes(text)
	c := cutter{text: clean, most: most}
	for at := c.next(0); at < len(clean); {
		end := c.valueEnd(at)
		if !json.Valid(clean[at:end]) || !c.value(at, end, "", deepestCut) {
			return clean, false
		}
		at = c.next(end)
	}
	return append(c.out, clean[c.done:]...), true
}

// cutter splits a valid JSON document into groups and writes them without secrets.
type cutter struct {
	text []byte
	most int // maximum size of a group, in bytes
	out  []byte
	done int // out has the text up to this position
}

// group is some members of a list or object, with the brackets that make them a value.
type group struct {
	start, end    int
	open, closing string
	name          string // name that describes the members: that of their list or object, or of an outer one
}

// value redacts the value from position `start` to position `end`; it returns false if a part that
// cannot be split is too large.
func (c *cutter) value(start, end int, name string, depth int) bool {
	if end-start <= c.most {
		return c.redact(group{start: start, end: end, name: name})
	}
	if c.text[start] == '"' || depth == 0 {
		return false
	}
	empty := group{open: string(c.text[start]), closing: string(c.text[end-1]), name: name}
	members := empty
	for at := c.next(start + 1); at < end-1; {
		valueStart, of := c.member(at, empty)
		memberEnd := c.valueEnd(valueStart)
		if members.end > 0 && memberEnd-members.start > c.most {
			if !c.redact(members) {
				return false
			}
			members = empty
		}
		switch {
		case memberEnd-at > c.most:
			if !c.value(valueStart, memberEnd, of, depth-1) {
				return false
			}
		case members.end == 0:
			members.start, members.end = at, memberEnd
		default:
			members.end = memberEnd
		}
		at = c.next(memberEnd)
	}
	return members.end == 0 || c.redact(members)
}

// redact redacts one group. It returns false if the group cannot be parsed.
func (c *cutter) redact(g group) bool {
	text := bytes.Join([][]byte{[]byte(g.open), c.text[g.start:g.end], []byte(g.closing)}, nil)
	root, ok := parseJSON(text)
	if !ok {
		return false
	}
	if !mark(root, g.name) {
		return true
	}
	clean, ok := replace(text, root)
	if !ok {
		return false
	}
	c.out = append(append(c.out, c.text[c.done:g.start]...), clean[len(g.open):len(clean)-len(g.closing)]...)
	c.done = g.end
	return true
}

// member returns where the value of a member begins, and the name that describes this value.
func (c *cutter) member(at int, of group) (valueStart int, name string) {
	if of.open != "{" {
		return at, of.name
	}
	keyEnd := c.valueEnd(at)
	_ = json.Unmarshal(c.text[at:keyEnd], &name) // the document is valid
	return c.next(keyEnd), nameWithin(of.name, name, "")
}

// next returns the beginning of the next value, or of a bracket, at or behind a position.
func (c *cutter) next(at int) int {
	for at < len(c.text) && strings.IndexByte(" \t\r\n,:", c.text[at]) >= 0 {
		at++
	}
	return at
}

// valueEnd returns the end of the value that begins at a place.
func (c *cutter) valueEnd(at int) int {
	depth := 0
	for at < len(c.text) {
		switch b := c.text[at]; {
		case b == '"':
			at = c.stringEnd(at)
		case b == '{' || b == '[':
			depth++
			at++
		case b == '}' || b == ']':
			depth--
			at++
		case depth == 0:
			for at < len(c.text) && strings.IndexByte(" \t\r\n,:{}[]\"", c.text[at]) < 0 {
				at++
			}
			return at
		default:
			at++
			continue
		}
		if depth <= 0 {
			return at
		}
	}
	return at
}

func (c *cutter) stringEnd(at int) int {
	for at++; at < len(c.text); at++ {
		switch c.text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(c.text)
}
