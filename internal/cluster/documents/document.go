package documents

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Broken is a document that is no YAML.
type Broken struct {
	Line int // the first one of the document, from 1
	Text []byte
	Err  error // the parser's, with the line of the text
}

// mostBroken bounds the documents of a text that are no YAML: the text after them is not read.
const mostBroken = 10

// Each calls visit with the value of each document of a text, YAML or JSON, in which aliases are replaced by their
// values. cut reports that some values were left out, as in Expanded. A document that is no YAML is handed to broken, and
// the next one is read.
func Each(text []byte, visit func(n *yaml.Node, cut bool), broken func(Broken)) {
	line, found := 0, 0
	for part := range parts(text) {
		if !eachOf(part, line, visit) {
			broken(Broken{Line: line + blankLines(part) + 1, Text: part, Err: errorOf(part, line)})
			if found++; found == mostBroken {
				return
			}
		}
		line += bytes.Count(part, []byte("\n"))
	}
}

// eachOf visits the documents of a part of a text that lies below some lines, and reports whether all are YAML.
func eachOf(part []byte, lines int, visit func(n *yaml.Node, cut bool)) bool {
	decoder := yaml.NewDecoder(bytes.NewReader(part))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return false
		}
		if len(document.Content) > 0 {
			lower(&document, lines)
			visit(Expanded(&document))
		}
	}
}

// lower adds lines to the line of a node, and of all nodes in it.
func lower(n *yaml.Node, lines int) {
	n.Line += lines
	for _, inner := range n.Content {
		lower(inner, lines)
	}
}

// errorOf returns the error of a part that is no YAML, with the line in the text.
func errorOf(part []byte, lines int) error {
	decoder := yaml.NewDecoder(io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("\n"), lines)), bytes.NewReader(part)))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			return err
		}
	}
}

func blankLines(part []byte) int {
	return bytes.Count(part[:len(part)-len(bytes.TrimLeft(part, " \t\r\n"))], []byte("\n"))
}

// parts returns the parts of a text that --- begins. YAML has no such line inside of a document. Comments and directives
// before the first --- are of the document that follows.
func parts(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		start, at, filled := 0, 0, false
		for line := range bytes.Lines(text) {
			if filled && isMarker(line) {
				if !yield(text[start:at]) {
					return
				}
				start = at
			}
			rest := bytes.TrimSpace(line)
			filled = filled || len(rest) > 0 && rest[0] != '#' && rest[0] != '%'
			at += len(line)
		}
		yield(text[start:])
	}
}

// isMarker reports whether a line begins a document.
func isMarker(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || bytes.ContainsRune([]byte(" \t\r\n"), rune(rest[0])))
}

// Items returns the objects of a List, of a PodList and the like, or the object itself.
func Items(n *yaml.Node) []*yaml.Node {
	items := Child(n, "items")
	if kind := Text(n, "kind"); items == nil || !strings.HasSuffix(kind, "List") {
		return []*yaml.Node{n}
	}
	var all []*yaml.Node
	for _, item := range items.Content {
		all = append(all, Items(item)...)
	}
	return all
}

// Child returns the value of a key of a mapping; nil if there is none. Of a key that is there twice, the last one counts,
// as for kubectl.
func Child(n *yaml.Node, key string) *yaml.Node {
	if _, value := Pair(n, key); value != nil {
		return value
	}
	return nil
}

// Pair returns a key of a mapping with its value, the last one; nil if there is none.
func Pair(n *yaml.Node, key string) (name, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := len(n.Content) &^ 1; i > 0; i -= 2 {
		if n.Content[i-2].Value == key {
			return n.Content[i-2], n.Content[i-1]
		}
	}
	return nil, nil
}

// Text returns a text at a path of keys; "" if there is none.
func Text(n *yaml.Node, path ...string) string {
	for _, key := range path {
		n = Child(n, key)
	}
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// Texts returns a mapping of texts.
func Texts(n *yaml.Node) map[string]string {
	all := map[string]string{}
	if n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			all[n.Content[i].Value] = n.Content[i+1].Value
		}
	}
	return all
}
