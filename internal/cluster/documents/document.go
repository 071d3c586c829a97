package documents

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Each calls visit with the value of each document of a text, YAML or JSON, in which aliases are replaced by their
// values. cut reports that some of these were left out, as in Expanded. An error is that of a text that is no YAML; the
// documents before it were visited.
func Each(text []byte, visit func(n *yaml.Node, cut bool)) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(document.Content) > 0 {
			visit(Expanded(&document))
		}
	}
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

// Child returns the value of a key of a mapping; nil if there is none.
func Child(n *yaml.Node, key string) *yaml.Node {
	if _, value := Pair(n, key); value != nil {
		return value
	}
	return nil
}

// Pair returns a key of a mapping with its value; nil if there is none.
func Pair(n *yaml.Node, key string) (name, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
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
