package documents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
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

// Document is a document of a text.
type Document struct {
	Value *yaml.Node // without aliases: their values are in their place
	Cut   bool       // some values were left out, as in Expanded
	// Begin and End are the offsets of the part of the text that has the document, from --- to the next one.
	Begin, End int
}

// Each calls visit with each document of a text, YAML or JSON. A document that is no YAML is handed to broken, and the
// next one is read.
func Each(text []byte, visit func(Document), broken func(Broken)) {
	line, found, at := 0, 0, 0
	for part := range parts(text) {
		d := Document{Begin: at, End: at + len(part)}
		at = d.End
		visited := func(n *yaml.Node, cut bool) {
			d.Value, d.Cut = n, cut
			visit(d)
		}
		if !eachOf(part, line, visited) {
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
	// With the line ends of Windows, the parser takes the comment above a key for one below the key before it.
	decoder := yaml.NewDecoder(bytes.NewReader(bytes.ReplaceAll(part, []byte("\r\n"), []byte("\n"))))
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

// Item is an object of a list.
type Item struct {
	Value *yaml.Node
	Path  []string // to it: items, and [N] for an item; empty: it is the document itself
}

// Items returns the objects of a List, of a PodList and the like, or the object itself.
func Items(n *yaml.Node) []Item { return itemsBelow(n, nil) }

func itemsBelow(n *yaml.Node, at []string) (all []Item) {
	items := Child(n, "items")
	if kind := Text(n, "kind"); items == nil || !strings.HasSuffix(kind, "List") {
		return []Item{{n, at}}
	}
	for i, item := range items.Content {
		all = append(all, itemsBelow(item, append(slices.Clip(at), "items", fmt.Sprintf("[%d]", i)))...)
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
