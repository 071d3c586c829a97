package yamledit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FormError reports a text whose form the package cannot edit, such as a field that an alias stands for. The text can be
// edited by hand.
type FormError struct {
	Line int // of the text, from 1; 0: unknown
	Why  string
}

func (e *FormError) Error() string {
	if e.Line == 0 {
		return e.Why
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Why)
}

// ErrNoField reports that a document does not have the field to remove.
var ErrNoField = errors.New("the document does not have the field")

// Remove removes a field from a text that has one document. path has the keys that lead to the field, and [N] for an
// item of a list. A mapping that loses its last field becomes {}.
func Remove(text []byte, path ...string) ([]byte, error) {
	return edited(text, func(e *edit) error {
		if rest := e.descend(path[:len(path)-1]); len(rest) > 0 {
			return ErrNoField
		}
		return e.remove(path[len(path)-1])
	})
}

// Set gives a field of a text that has one document a value: a string, a bool or an int. It adds the field, and the
// mappings around it, if the document lacks them. A value that is a mapping or a list is not replaced.
func Set(text []byte, value any, path ...string) ([]byte, error) {
	return edited(text, func(e *edit) error {
		rest := e.descend(path[:len(path)-1])
		return e.set(append(rest, path[len(path)-1]), value)
	})
}

// edited applies an edit to a text, and holds the result against the edited document.
func edited(text []byte, apply func(*edit) error) ([]byte, error) {
	mark := []byte("\xef\xbb\xbf")
	body, marked := bytes.CutPrefix(text, mark)
	document, err := parsed(body)
	if err != nil {
		return nil, err
	}
	e := &edit{lines: newLines(body), within: document.Content[0], isDocument: true}
	if err := errors.Join(apply(e), e.failed); err != nil {
		return nil, err
	}
	result := slices.Concat(body[:e.from], []byte(e.text), body[e.to:])
	after, err := parsed(result)
	if err != nil || !same(document, after) {
		return nil, &FormError{e.line, "the form of the text is not one that swdt edits"}
	}
	if marked {
		result = slices.Concat(mark, result)
	}
	return result, nil
}

// parsed returns the one document of a text.
func parsed(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, next yaml.Node
	if err := decoder.Decode(&document); err != nil {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	if decoder.Decode(&next) == nil {
		return nil, &FormError{next.Line, "a second document begins"}
	}
	return &document, nil
}

// edit is one change of a text: the bytes from one offset to another are replaced. The same change is made in the
// document, against which the changed text is held.
type edit struct {
	lines
	within *yaml.Node // the mapping or list that has the field
	key    *yaml.Node // of within; nil: it is the document, or an item
	// isDocument reports that within is the document.
	isDocument bool
	from, to   int
	text       string
	line       int
	failed     error
}

// descend enters the values that keys and indices lead to, and returns the keys that the document lacks.
func (e *edit) descend(path []string) (rest []string) {
	for i, part := range path {
		e.refuseShared(e.within)
		at := position(e.within, part)
		if at < 0 {
			return slices.Clone(path[i:])
		}
		value := e.within.Content[at]
		if e.within.Kind == yaml.MappingNode {
			if isNull(value) {
				return slices.Clone(path[i:])
			}
			e.key = e.within.Content[at-1]
		} else {
			e.key = nil
		}
		e.within, e.isDocument = value, false
	}
	return nil
}

// position returns the index of the value that a key or an index leads to in the content of a node; -1: none.
func position(n *yaml.Node, part string) int {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == part {
				return i + 1
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(part, "["), "]")); err == nil && i >= 0 && i < len(n.Content) {
			return i
		}
	}
	return -1
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// refuseShared fails the edit of a value that is an alias, or that aliases may name.
func (e *edit) refuseShared(n *yaml.Node) {
	if e.failed == nil && (n.Kind == yaml.AliasNode || n.Anchor != "") {
		e.failed = &FormError{n.Line, "the value is shared by an anchor and its aliases"}
	}
}

// hasShared reports whether a value or one in it has an anchor, so that something else may need it.
func hasShared(n *yaml.Node) bool { return n.Anchor != "" || slices.ContainsFunc(n.Content, hasShared) }

// remove removes a pair of the mapping.
func (e *edit) remove(name string) error {
	e.refuseShared(e.within)
	at := position(e.within, name)
	if e.within.Kind != yaml.MappingNode || at < 0 {
		return ErrNoField
	}
	key, value := e.within.Content[at-1], e.within.Content[at]
	e.line = key.Line
	if hasShared(value) {
		return &FormError{key.Line, "the value is shared by an anchor and its aliases"}
	}
	var next *yaml.Node
	if at+1 < len(e.within.Content) {
		next = e.within.Content[at+1]
	}
	var err error
	if e.within.Style&yaml.FlowStyle != 0 {
		err = e.removeInFlow(at, key, next)
	} else {
		err = e.removeLines(key, value, next)
	}
	e.within.Content = slices.Delete(e.within.Content, at-1, at+1)
	return err
}

// removeLines removes a pair of a mapping in block style, whose lines have no other pair.
func (e *edit) removeLines(key, value, next *yaml.Node) error {
	first, last := key.Line, e.lastLine(key, value)
	switch alone := len(e.within.Content) == 2; {
	case alone && e.key == nil:
		return &FormError{key.Line, "it is the only field"}
	case alone:
		e.from, e.to = e.afterColon(e.key), e.end(last)
		e.text = " {}" + string(e.body[e.from:e.start(first)]) // with comments
	case strings.TrimSpace(string(e.body[e.start(first):e.at(key)])) == "":
		e.from, e.to = e.start(first), e.end(last)
	case next == nil || next.Line != last+1:
		return &FormError{key.Line, "it is the first field of an item, and the next field is not below it"}
	default: // "- " is before it
		e.from, e.to = e.at(key), e.at(next)
	}
	return nil
}

// removeInFlow removes a pair of a mapping in braces, with one comma.
func (e *edit) removeInFlow(at int, key, next *yaml.Node) error {
	end, ok := e.flowEnd(e.at(key))
	if !ok {
		return &FormError{key.Line, "the end of the value is not found"}
	}
	e.from, e.to = e.at(key), end
	if next != nil {
		e.to = e.at(next)
	} else if at >= 3 {
		if e.from, ok = e.flowEnd(e.at(e.within.Content[at-3])); !ok {
			return &FormError{key.Line, "the end of the value before it is not found"}
		}
	}
	if bytes.Contains(e.body[e.from:e.to], []byte("#")) {
		return &FormError{key.Line, "a comment may be beside it"}
	}
	return nil
}

// set sets the field to which keys lead from the mapping, which has at most the first of them.
func (e *edit) set(keys []string, value any) error {
	e.refuseShared(e.within)
	if e.within.Kind != yaml.MappingNode {
		return &FormError{e.within.Line, "the field is no field of a mapping"}
	}
	e.line = e.within.Line
	at := position(e.within, keys[0])
	if at < 0 {
		return e.add(keys, value)
	}
	key, old := e.within.Content[at-1], e.within.Content[at]
	e.line = key.Line
	if old.Kind == yaml.AliasNode || hasShared(old) {
		return &FormError{key.Line, "the value is shared by an anchor and its aliases"}
	}
	switch {
	case isNull(old) && old.Value == "" && e.within.Style&yaml.FlowStyle == 0: // nothing is behind the colon
		e.from = e.afterColon(key)
		e.to = e.from
		e.text = " " + inFlow(keys[1:], value, e.quotes())
	case old.Kind == yaml.ScalarNode && (len(keys) == 1 || isNull(old)):
		e.from = e.at(old)
		var ok bool
		if e.to, ok = e.scalarEnd(old); !ok {
			return &FormError{old.Line, "the value has several lines"}
		}
		e.text = inFlow(keys[1:], value, e.quotes())
	default:
		return &FormError{old.Line, "the value is a mapping or a list"}
	}
	e.within.Content[at] = node(keys[1:], value)
	return nil
}

// add adds a field to the mapping: to a document at its end, to another mapping above its first field, or below it if
// that is behind a hyphen.
func (e *edit) add(keys []string, value any) error {
	switch {
	case e.within.Style&yaml.FlowStyle != 0:
		e.from = e.at(e.within) + 1
		e.text = strings.TrimSuffix(strings.TrimPrefix(inFlow(keys, value, e.quotes()), "{"), "}")
		if len(e.within.Content) > 0 {
			e.text += ", "
		}
	case len(e.within.Content) == 0:
		return &FormError{e.within.Line, "the mapping is empty"}
	default:
		first, last := e.within.Content[0], len(e.within.Content)-2
		indent := strings.Repeat(" ", first.Column-1)
		line := e.withComments(first)
		switch {
		case e.isDocument:
			line = e.lastLine(e.within.Content[last], e.within.Content[last+1]) + 1
		case strings.TrimSpace(string(e.body[e.start(first.Line):e.at(first)])) != "":
			line = e.lastLine(first, e.within.Content[1]) + 1
		}
		e.from = e.start(line)
		if e.from > 0 && e.body[e.from-1] != '\n' { // the last line has no end
			e.text = e.newline()
		}
		e.text += inLines(keys, value, indent, e.newline())
	}
	e.to = e.from
	e.within.Content = append(e.within.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: keys[0]}, node(keys[1:], value))
	return nil
}

// quotes reports whether the keys of the mapping are in quotes, as in JSON.
func (e *edit) quotes() bool {
	return len(e.within.Content) > 0 && e.within.Content[0].Style&yaml.DoubleQuotedStyle != 0
}

// node returns the value to which keys lead, as the node that the parser makes of it.
func node(keys []string, value any) *yaml.Node {
	var n yaml.Node
	if len(keys) == 0 {
		if err := n.Encode(value); err != nil {
			panic(err) // a string, a bool or an int
		}
		return &n
	}
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Tag: "!!str", Value: keys[0]}, node(keys[1:], value)}}
}

// inFlow returns the value to which keys lead on one line, such as {name: windows}.
func inFlow(keys []string, value any, quotes bool) string {
	if len(keys) == 0 {
		return scalar(value, quotes)
	}
	return "{" + scalar(keys[0], quotes) + ": " + inFlow(keys[1:], value, quotes) + "}"
}

// inLines returns a field in lines of its own.
func inLines(keys []string, value any, indent, newline string) string {
	line := indent + scalar(keys[0], false) + ":"
	if len(keys) == 1 {
		return line + " " + scalar(value, false) + newline
	}
	return line + newline + inLines(keys[1:], value, indent+"  ", newline)
}

// scalar returns a string, a bool or an int as YAML has it; quotes: as JSON has it.
func scalar(value any, quotes bool) string {
	encode := yaml.Marshal
	if quotes {
		encode = json.Marshal
	}
	text, err := encode(value)
	if err != nil {
		panic(err) // a string, a bool or an int
	}
	if plain := strings.TrimSuffix(string(text), "\n"); !strings.ContainsAny(plain, "\n{}[],") {
		return plain
	}
	text, _ = json.Marshal(value) // in quotes, since it may be inside of braces; JSON is YAML
	return string(text)
}
