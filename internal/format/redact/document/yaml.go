package document

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// yamlFormat returns the format of YAML. Its field apply writes a new document, since a YAML node
// has the position of its beginning but not of its end. apply runs only if the scan of the
// document's lines has missed a secret or has damaged the document.
func yamlFormat() format {
	var documents []*yaml.Node
	nodes := map[*value]*yaml.Node{}
	return format{
		parse: func(text []byte) (root *value, ok bool) {
			documents, ok = readYAML(text)
			if !ok {
				return nil, false
			}
			root, nodes = &value{}, map[*value]*yaml.Node{}
			for _, document := range documents {
				root.children = append(root.children, yamlValue(document, nodes))
			}
			return root, true
		},
		apply: func(_ []byte, root *value) ([]byte, bool) {
			each(root, func(v *value) {
				if v.secret {
					nodes[v].SetString(v.clean)
				}
			})
			return writeYAML(documents)
		},
	}
}

// readYAML returns the documents of a text, if each is an object or a list.
func readYAML(text []byte) (documents []*yaml.Node, ok bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		document := &yaml.Node{}
		err := decoder.Decode(document)
		if errors.Is(err, io.EOF) {
			return documents, len(documents) > 0
		}
		if err != nil || len(document.Content) != 1 || document.Content[0].Kind == yaml.ScalarNode {
			return nil, false
		}
		documents = append(documents, document)
	}
}

func writeYAML(documents []*yaml.Node) ([]byte, bool) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for _, document := range documents {
		if encoder.Encode(document) != nil {
			return nil, false
		}
	}
	return out.Bytes(), encoder.Close() == nil
}

func yamlValue(node *yaml.Node, nodes map[*value]*yaml.Node) *value {
	v := &value{object: node.Kind == yaml.MappingNode, list: node.Kind == yaml.SequenceNode}
	nodes[v] = node
	switch node.Kind {
	case yaml.ScalarNode:
		v.encode = func(text string) string { return text }
		v.scalar, v.text = node.Tag != "!!null" && node.Tag != "!!bool", node.Value
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			child := yamlValue(node.Content[i+1], nodes)
			child.name = node.Content[i].Value
			v.children = append(v.children, child)
		}
	case yaml.SequenceNode, yaml.DocumentNode:
		for _, item := range node.Content {
			v.children = append(v.children, yamlValue(item, nodes))
		}
	}
	return v
}
