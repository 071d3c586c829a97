package answer_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

const namespace = "urn:schemas-microsoft-com:unattend"

// element is an element of an answer file, read back without the types that wrote it.
type element struct {
	name       string
	attributes map[string]string
	text       string
	children   []*element
}

// parse reads an answer file, which must be well formed and of one namespace.
func parse(t testing.TB, file []byte) *element {
	t.Helper()
	root := &element{}
	stack := []*element{root}
	decoder := xml.NewDecoder(bytes.NewReader(file))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, file)
		}
		top := stack[len(stack)-1]
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Space != namespace {
				t.Errorf("%s is of the namespace %q", token.Name.Local, token.Name.Space)
			}
			next := &element{name: token.Name.Local, attributes: map[string]string{}}
			for _, attribute := range token.Attr {
				next.attributes[attribute.Name.Local] = attribute.Value
				if attribute.Name.Local == "action" &&
					attribute.Name.Space != "http://schemas.microsoft.com/WMIConfig/2002/State" {
					t.Errorf("action of %s is of the namespace %q", next.name, attribute.Name.Space)
				}
			}
			top.children = append(top.children, next)
			stack = append(stack, next)
		case xml.EndElement:
			top.text = strings.TrimSpace(top.text)
			stack = stack[:len(stack)-1]
		case xml.CharData:
			top.text += string(token)
		case xml.Comment, xml.Directive:
			t.Errorf("a comment or directive: %v", token)
		}
	}
	if len(root.children) != 1 || root.children[0].name != "unattend" {
		t.Fatalf("no answer file:\n%s", file)
	}
	return root.children[0]
}

// setting is an element without children.
type setting struct {
	pass, component, path, value string
	in                           string // the parent's name
}

// settings lists the settings of a file, in its order.
func settings(t testing.TB, file []byte) []setting {
	t.Helper()
	var out []setting
	for _, pass := range parse(t, file).children {
		for _, component := range pass.children {
			for _, child := range component.children {
				leaves(child, setting{pass: pass.attributes["pass"], component: component.attributes["name"],
					in: component.name}, &out)
			}
		}
	}
	return out
}

func leaves(e *element, at setting, out *[]setting) {
	at.path = strings.TrimPrefix(at.path+"/"+e.name, "/")
	if len(e.children) == 0 {
		at.value = e.text
		*out = append(*out, at)
		return
	}
	at.in = e.name
	for _, child := range e.children {
		leaves(child, at, out)
	}
}

// values returns the values of a setting, wherever it is.
func values(all []setting, path string) []string {
	var out []string
	for _, s := range all {
		if s.path == path {
			out = append(out, s.value)
		}
	}
	return out
}

// skeleton returns everything of a file but its values.
func skeleton(all []setting) []setting {
	out := slices.Clone(all)
	for n := range out {
		out[n].value = ""
	}
	return out
}
