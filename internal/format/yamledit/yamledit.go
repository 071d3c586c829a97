// Package yamledit changes one field of a YAML or JSON document, and leaves all other bytes as they are: comments, the
// order of fields, quotes, blank lines and line ends.
//
// A change is made in the text, at the place that the parser reports. The result is parsed again and compared with the
// document that the change should give. If they differ, as they may with anchors or block scalars, the error is a
// *PlaceError and nothing is changed.
package yamledit

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// PlaceError reports a field that cannot be changed without rewriting other parts of the document.
type PlaceError struct {
	Path []string
	Why  string
}

func (e *PlaceError) Error() string {
	return fmt.Sprintf("change %s alone: %s; change it with an editor", strings.Join(e.Path, "."), e.Why)
}

// Set returns the text with a value at a path of keys, and of [N] for an item of a list. The value is a boolean, a number, a text, or a list or mapping of
// such values, as encoding/json or yaml decode them. Mappings on the way that are missing are added.
func Set(text string, path []string, value any) (string, error) {
	e, err := parse(text, path)
	if err != nil {
		return "", err
	}
	written, err := e.put(value)
	if err != nil {
		return "", err
	}
	return written, e.verify(written, func(document map[string]any) error { return set(document, path, value) })
}

// Remove returns the text without the field at a path, as Unset does. A mapping that is then empty stays, as {}.
func Remove(text string, path []string) (string, error) {
	e, err := parse(text, path)
	if err != nil {
		return "", err
	}
	if m := e.mappingOf(path[:len(path)-1]); m != nil && len(m.Content) == 2 && indexOf(m, path[len(path)-1]) >= 0 && len(path) > 1 {
		return Set(text, path[:len(path)-1], map[string]any{})
	}
	return Unset(text, path)
}

// mappingOf returns the mapping at a path; nil: there is none.
func (e *editor) mappingOf(path []string) *yaml.Node {
	m := e.root
	for _, name := range path {
		if m = childOf(m, name); m == nil {
			return nil
		}
	}
	if m.Kind != yaml.MappingNode {
		return nil
	}
	return m
}

// childOf returns the value of a field of a mapping, or an item of a list; nil: there is none.
func childOf(n *yaml.Node, name string) *yaml.Node {
	if n.Kind == yaml.MappingNode {
		if at := indexOf(n, name); at >= 0 {
			return n.Content[at+1]
		}
		return nil
	}
	if i, ok := itemIndex(name); ok && n.Kind == yaml.SequenceNode && i < len(n.Content) {
		return n.Content[i]
	}
	return nil
}

// itemIndex reads [N].
func itemIndex(name string) (i int, ok bool) {
	if !strings.HasPrefix(name, "[") || !strings.HasSuffix(name, "]") {
		return 0, false
	}
	i, err := strconv.Atoi(name[1 : len(name)-1])
	return i, err == nil && i >= 0
}

// Unset returns the text without the field at a path, and without the mappings that are then empty. The text
// stays as it is if it lacks the field.
func Unset(text string, path []string) (string, error) {
	e, err := parse(text, path)
	if err != nil {
		return "", err
	}
	written, err := e.remove()
	if err != nil || written == text {
		return text, err
	}
	return written, e.verify(written, func(document map[string]any) error { unset(document, path); return nil })
}

// editor is one change of a document.
type editor struct {
	text  string
	path  []string
	lines []int // the offset at which each line begins
	root  *yaml.Node
}

func parse(text string, path []string) (*editor, error) {
	e := &editor{text: text, path: path, lines: []int{0}}
	if len(path) == 0 {
		return nil, e.fail("the path is empty")
	}
	if strings.ContainsAny(text, "\u0085\u2028\u2029") { // line ends of YAML that no other program counts
		return nil, e.fail("the text has line ends of Unicode")
	}
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' || text[i] == '\r' && !strings.HasPrefix(text[i:], "\r\n") {
			e.lines = append(e.lines, i+1)
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, e.fail("the text is empty")
		}
		return nil, err
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, e.fail("the text has several documents")
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil, e.fail("the document is no mapping")
	}
	e.root = document.Content[0]
	return e, nil
}

func (e *editor) fail(why string, args ...any) error {
	return &PlaceError{Path: e.path, Why: fmt.Sprintf(why, args...)}
}

// put returns the text with a value at the path.
func (e *editor) put(value any) (string, error) {
	m := e.root
	for i, name := range e.path {
		if m.Kind == yaml.SequenceNode {
			if m = childOf(m, name); m == nil || len(m.Content) == 0 || i == len(e.path)-1 {
				return "", e.fail("%s is no item with fields", name)
			}
			continue
		}
		at := indexOf(m, name)
		if at < 0 {
			return e.insert(m, e.path[i:], value)
		}
		key, is := m.Content[at], m.Content[at+1]
		switch {
		case i == len(e.path)-1:
			return e.replace(m, key, is, value)
		case isNull(is):
			return e.replace(m, key, is, nested(e.path[i+1:], value))
		case is.Kind != yaml.MappingNode && is.Kind != yaml.SequenceNode:
			return "", e.fail("%s on line %d is no mapping", name, is.Line)
		}
		m = is
	}
	return "", e.fail("the path is empty")
}

// indexOf returns the index of a key in a mapping, or -1.
func indexOf(m *yaml.Node, name string) int {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			return i
		}
	}
	return -1
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func isFlow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

// nested returns the value below mappings with these keys.
func nested(names []string, value any) any {
	for _, name := range slices.Backward(names) {
		value = map[string]any{name: value}
	}
	return value
}

// insert adds a field to a mapping that lacks it.
func (e *editor) insert(m *yaml.Node, names []string, value any) (string, error) {
	if isFlow(m) {
		field, err := inFlow(nested(names, value), isFlow(e.root))
		if err != nil {
			return "", err
		}
		field = strings.TrimSuffix(strings.TrimPrefix(field, "{"), "}")
		if len(m.Content) > 0 {
			field += ", "
		}
		at := e.offset(m) + 1
		return e.text[:at] + field + e.text[at:], nil
	}
	indent := strings.Repeat(" ", m.Content[0].Column-1)
	lines := make([]string, 0, len(names))
	for _, name := range names {
		key, err := scalar(name)
		if err != nil {
			return "", err
		}
		lines = append(lines, indent+key+":")
		indent += "  "
	}
	written, err := scalar(value)
	if err != nil {
		return "", err
	}
	lines[len(lines)-1] += " " + written
	return e.insertLines(m, lines)
}

// insertLines adds lines behind the last entry of a block mapping whose end can be found.
func (e *editor) insertLines(m *yaml.Node, lines []string) (string, error) {
	lineEnd := e.lineEnd()
	for i := len(m.Content) - 2; i >= 0; i -= 2 {
		end, err := e.entryEnd(m, i)
		if err != nil {
			continue
		}
		at := e.nextLine(end)
		added := strings.Join(lines, lineEnd)
		if at == len(e.text) && !strings.HasSuffix(e.text, "\n") {
			return e.text + lineEnd + added, nil
		}
		return e.text[:at] + added + lineEnd + e.text[at:], nil
	}
	return "", e.fail("no entry of its mapping on line %d has an end that swdt finds", m.Line)
}

// lineEnd returns the end of the text's first line.
func (e *editor) lineEnd() string {
	if i := strings.IndexByte(e.text, '\n'); i > 0 && e.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// replace puts another value behind a key.
func (e *editor) replace(m, key, is *yaml.Node, value any) (string, error) {
	written, err := scalar(value)
	if isFlow(m) {
		written, err = inFlow(value, isFlow(e.root))
	}
	if err != nil {
		return "", err
	}
	colon, err := e.colon(key, isFlow(m))
	if err != nil {
		return "", err
	}
	if isNull(is) && is.Value == "" {
		return e.text[:colon] + " " + written + e.text[colon:], nil
	}
	begin := e.offset(is)
	end, err := e.end(is, isFlow(m))
	if err != nil {
		return "", err
	}
	if !isFlow(is) && is.Kind != yaml.ScalarNode { // a collection in lines of its own, with comments above them
		first := max(colon, e.lines[is.Line-1])
		return e.text[:colon] + " " + written + e.text[colon:first] + e.text[e.nextLine(end):], nil
	}
	return e.text[:begin] + written + e.text[end:], nil
}

// remove returns the text without the field at the path.
func (e *editor) remove() (string, error) {
	type step struct {
		m  *yaml.Node
		at int
	}
	var steps []step
	m := e.root
	for i, name := range e.path {
		if m.Kind == yaml.SequenceNode {
			if m = childOf(m, name); m == nil || i == len(e.path)-1 {
				return e.text, nil
			}
			continue
		}
		at := indexOf(m, name)
		if at < 0 {
			return e.text, nil
		}
		steps = append(steps, step{m, at})
		if next := m.Content[at+1]; i < len(e.path)-1 {
			if next.Kind != yaml.MappingNode && next.Kind != yaml.SequenceNode {
				return e.text, nil
			}
			m = next
		}
	}
	last := len(steps) - 1
	for last > 0 && len(steps[last].m.Content) == 2 && steps[last-1].m.Content[steps[last-1].at+1] == steps[last].m { // it would be empty
		last--
	}
	if len(steps[last].m.Content) == 2 && steps[last].m != e.root {
		return "", e.fail("it is the only field of an item")
	}
	if isFlow(steps[last].m) {
		return e.removeFlow(steps[last].m, steps[last].at)
	}
	return e.removeLines(steps[last].m, steps[last].at)
}

func (e *editor) removeFlow(m *yaml.Node, at int) (string, error) {
	begin := e.offset(m.Content[at])
	end, err := e.entryEnd(m, at)
	switch {
	case err != nil:
		return "", err
	case at+2 < len(m.Content):
		end = e.offset(m.Content[at+2])
	case at > 0:
		if begin, err = e.entryEnd(m, at-2); err != nil {
			return "", err
		}
	}
	return e.text[:begin] + e.text[end:], nil
}

func (e *editor) removeLines(m *yaml.Node, at int) (string, error) {
	key := m.Content[at]
	begin := e.lines[key.Line-1]
	if strings.TrimSpace(e.text[begin:e.offset(key)]) != "" {
		return "", e.fail("something precedes it on line %d", key.Line)
	}
	end, err := e.entryEnd(m, at)
	if err != nil {
		return "", err
	}
	end = e.nextLine(end)
	if end == len(e.text) && !strings.HasSuffix(e.text, "\n") { // the line before it then has no end either
		begin = len(strings.TrimSuffix(strings.TrimSuffix(e.text[:begin], "\n"), "\r"))
	}
	return e.text[:begin] + e.text[end:], nil
}

// offset returns the offset of a node in the text. The parser counts characters from 1.
func (e *editor) offset(n *yaml.Node) int {
	at := e.lines[n.Line-1]
	for range n.Column - 1 {
		if at == len(e.text) {
			break
		}
		at += runeLength(e.text[at:])
	}
	return at
}

func runeLength(text string) int {
	for i := range text {
		if i > 0 {
			return i
		}
	}
	return len(text)
}

// nextLine returns the offset of the line behind the one with this offset.
func (e *editor) nextLine(at int) int {
	i, found := slices.BinarySearch(e.lines, at)
	if found {
		i++
	}
	if i == len(e.lines) {
		return len(e.text)
	}
	return e.lines[i]
}

// entryEnd returns the offset behind the value of the entry at an index of a mapping.
func (e *editor) entryEnd(m *yaml.Node, at int) (int, error) {
	if value := m.Content[at+1]; !isNull(value) || value.Value != "" {
		return e.end(value, isFlow(m))
	}
	return e.colon(m.Content[at], isFlow(m))
}

// colon returns the offset behind the colon of a key.
func (e *editor) colon(key *yaml.Node, flow bool) (int, error) {
	end := e.offset(key)
	if end < len(e.text) && (e.text[end] == '"' || e.text[end] == '\'') {
		var err error
		if end, err = e.end(key, flow); err != nil {
			return 0, err
		}
	} else {
		end += len(key.Value)
	}
	for end < len(e.text) && e.text[end] == ' ' {
		end++
	}
	if end >= len(e.text) || e.text[end] != ':' {
		return 0, e.fail("the key on line %d has another form than NAME: VALUE", key.Line)
	}
	return end + 1, nil
}

// end returns the offset behind a node.
func (e *editor) end(n *yaml.Node, flow bool) (int, error) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return 0, e.fail("line %d has an anchor or an alias", n.Line)
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0:
		return 0, e.fail("line %d has a block of text or a tag", n.Line)
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0:
		return e.plainEnd(e.offset(n), flow), nil
	case n.Kind == yaml.ScalarNode:
		return e.quoteEnd(e.offset(n)), nil
	case isFlow(n):
		return e.bracketEnd(e.offset(n)), nil
	case n.Kind == yaml.MappingNode && len(n.Content) > 1:
		return e.entryEnd(n, len(n.Content)-2)
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0:
		return e.end(n.Content[len(n.Content)-1], false)
	}
	return 0, e.fail("line %d has an unusual form", n.Line)
}

// plainEnd returns the offset behind a text without quotes, which ends with its line.
func (e *editor) plainEnd(at int, flow bool) int {
	line := e.text[at:e.nextLine(at)]
	for i := range line {
		comment := line[i] == '#' && i > 0 && (line[i-1] == ' ' || line[i-1] == '\t')
		if comment || flow && strings.IndexByte(",]}", line[i]) >= 0 {
			line = line[:i]
			break
		}
	}
	return at + len(strings.TrimRight(line, " \t\r\n"))
}

// quoteEnd returns the offset behind a text in quotes.
func (e *editor) quoteEnd(at int) int {
	quote := e.text[at]
	for i := at + 1; i < len(e.text); i++ {
		switch {
		case quote == '"' && e.text[i] == '\\':
			i++
		case quote == '\'' && strings.HasPrefix(e.text[i:], "''"):
			i++
		case e.text[i] == quote:
			return i + 1
		}
	}
	return len(e.text)
}

// bracketEnd returns the offset behind a list or mapping in brackets.
func (e *editor) bracketEnd(at int) int {
	depth := 0
	for i := at; i < len(e.text); i++ {
		switch c := e.text[i]; {
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case (c == '"' || c == '\'') && strings.IndexByte(" \t\r\n{[,:", e.text[i-1]) >= 0:
			i = e.quoteEnd(i) - 1
		case c == '#' && strings.IndexByte(" \t\r\n", e.text[i-1]) >= 0:
			i = e.nextLine(i) - 1
		}
	}
	return len(e.text)
}

// verify returns an error unless the new text is the document after the change.
func (e *editor) verify(written string, change func(map[string]any) error) error {
	var want, got map[string]any
	if err := yaml.Unmarshal([]byte(e.text), &want); err != nil {
		return err
	}
	if want == nil {
		want = map[string]any{}
	}
	if err := change(want); err != nil {
		return e.fail("%v", err)
	}
	if err := yaml.Unmarshal([]byte(written), &got); err != nil || !reflect.DeepEqual(want, got) {
		return e.fail("its place has a form that swdt does not change")
	}
	return nil
}

// set sets a field of a decoded document.
func set(document map[string]any, path []string, value any) error {
	written, err := scalar(value)
	if err != nil {
		return err
	}
	var decoded any // with the types of yaml
	if err := yaml.Unmarshal([]byte(written), &decoded); err != nil {
		return err
	}
	var at any = document
	for _, name := range path[:len(path)-1] {
		switch d := at.(type) {
		case map[string]any:
			if _, ok := d[name].(map[string]any); !ok && !isList(d[name]) {
				d[name] = map[string]any{}
			}
			at = d[name]
		default:
			at = item(d, name)
		}
	}
	mapping, ok := at.(map[string]any)
	if !ok {
		return errors.New("the field is in no mapping")
	}
	mapping[path[len(path)-1]] = decoded
	return nil
}

func isList(value any) bool { _, ok := value.([]any); return ok }

// item returns an item of a decoded list; nil: there is none.
func item(list any, name string) any {
	all, _ := list.([]any)
	if i, ok := itemIndex(name); ok && i < len(all) {
		return all[i]
	}
	return nil
}

// unset removes a field of a decoded document, and reports whether its mapping is then empty.
func unset(document any, path []string) (empty bool) {
	name := path[0]
	mapping, ok := document.(map[string]any)
	switch {
	case !ok && len(path) > 1:
		unset(item(document, name), path[1:])
		return false
	case !ok:
		return false
	case len(path) == 1 || mapping[name] != nil && unset(mapping[name], path[1:]):
		delete(mapping, name)
	}
	return len(mapping) == 0
}
