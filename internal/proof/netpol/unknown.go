package netpol

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	nodes "go.yaml.in/yaml/v3"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// unknownField reports a field that a NetworkPolicy does not have.
type unknownField struct {
	path string // such as spec.ingress[0].form
}

func (e *unknownField) Error() string {
	parent, name := "", e.path
	if dot := strings.LastIndex(e.path, "."); dot >= 0 {
		parent, name = e.path[:dot], e.path[dot+1:]
	}
	kind := "networkpolicy"
	for step := range strings.SplitSeq(parent, ".") {
		step, _, _ = strings.Cut(step, "[")
		if step != "" && step != "items" {
			kind += "." + step
		}
	}
	return fmt.Sprintf("%s: unknown field %s; `kubectl explain %s` lists the known ones", e.path, name, kind)
}

// decodeStrict decodes a document. The error is an *unknownField if into has no such field, unless it is one of the
// ignored fields or below one: fields that an API server wrote and later versions of Kubernetes do not have.
func decodeStrict(document []byte, into any, ignored ...string) error {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	problems, err := json.UnmarshalStrict(text, into, json.DisallowUnknownFields)
	if err != nil {
		return err
	}
	for _, problem := range problems {
		field, ok := problem.(json.FieldError)
		switch {
		case !ok:
			return problem
		case !slices.Contains(ignored, field.FieldPath()):
			return &unknownField{field.FieldPath()}
		}
	}
	return nil
}

// line returns the line of the field in its document, counted from 1. If a step of the path is not found,
// such as one behind an alias, it is the line of the step before.
func (e *unknownField) line(document []byte) int {
	var root nodes.Node
	if nodes.Unmarshal(document, &root) != nil || len(root.Content) == 0 {
		return 1
	}
	at, line := root.Content[0], root.Content[0].Line
	for step := range strings.FieldsFuncSeq(e.path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		key, value := child(at, step)
		if key == nil {
			break
		}
		at, line = value, key.Line
	}
	return line
}

// child returns the node that names a child, and the child: the value of a field, or an element.
func child(parent *nodes.Node, step string) (name, value *nodes.Node) {
	switch parent.Kind {
	case nodes.MappingNode:
		for i := 0; i+1 < len(parent.Content); i += 2 {
			if parent.Content[i].Value == step {
				return parent.Content[i], parent.Content[i+1]
			}
		}
	case nodes.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(parent.Content) {
			return parent.Content[i], parent.Content[i]
		}
	}
	return nil, nil
}
