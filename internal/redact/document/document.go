package document

import (
	"bytes"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/redact"
)

// Largest is the largest document that is parsed, bytes.
const Largest = 2 << 20

// value is a part of a document: an object with named values, a list, or a text.
type value struct {
	name     string
	text     string // of a scalar, without quotes and escapes
	scalar   bool
	object   bool
	list     bool
	children []*value

	start, end int    // where a scalar stands in the document
	mark       string // what stands there instead, if it is secret
	secret     bool
	clean      string              // its text without secrets; for the formats that write a document anew
	encode     func(string) string // how such a text is written; nil: documents within this one are not read
}

// format reads documents of one kind.
type format struct {
	// parse returns the values of a document; not ok if it is none of this kind.
	parse func(text []byte) (root *value, ok bool)
	// apply writes the document without the secret values; nil: by their places.
	apply func(text []byte, root *value) ([]byte, bool)
}

// Redact takes secrets out of a text: those that redact.Redactor finds, and if the
// text is a document, those that its structure shows. A document stays one, of which
// only values change, but for values that look as if they went on beyond their end.
func Redact(r *redact.Redactor, text []byte) []byte {
	clean := r.Bytes(text)
	if len(text) > Largest {
		return clean
	}
	f, before := parse(text)
	if before == nil {
		return clean
	}
	if after, ok := f.parse(clean); !ok || !alike(before, after) {
		before, _ = f.parse(text) // formats may keep what they read last
		return redactValues(r, f, text, before, clean)
	} else if !mark(after) {
		return clean
	} else if redacted, ok := f.write(clean, after); ok {
		return redacted
	}
	return clean
}

// redactValues redacts each value of a document by itself, since a scan of its lines
// took a part of the document for one of a value. If the scan finds more than that,
// its result stands: to lose a secret is worse than to keep the document.
func redactValues(r *redact.Redactor, f format, text []byte, root *value, otherwise []byte) []byte {
	mark(root)
	each(root, func(v *value) {
		if v.secret || !v.scalar || v.encode == nil {
			return
		}
		if clean := r.String(v.text); clean != v.text {
			v.secret, v.clean, v.mark = true, clean, v.encode(clean)
		}
	})
	if redacted, ok := f.write(text, root); ok && bytes.Equal(r.Bytes(redacted), redacted) {
		return redacted
	}
	return otherwise
}

// alike reports whether two documents have the same names and lists.
func alike(a, b *value) bool {
	if len(a.children) != len(b.children) || a.name != b.name || a.object != b.object || a.list != b.list {
		return false
	}
	for i := range a.children {
		if !alike(a.children[i], b.children[i]) {
			return false
		}
	}
	return true
}

// write writes a document without its secret values; not ok if it would be none.
func (f format) write(text []byte, root *value) ([]byte, bool) {
	apply := f.apply
	if apply == nil {
		apply = replace
	}
	redacted, ok := apply(text, root)
	if !ok {
		return nil, false
	}
	_, ok = f.parse(redacted)
	return redacted, ok
}

// parse reads a document of any format.
func parse(text []byte) (format, *value) {
	trimmed := bytes.TrimLeft(text, " \t\r\n\xef\xbb\xbf")
	if len(trimmed) == 0 {
		return format{}, nil
	}
	var formats []format
	switch trimmed[0] {
	case '{':
		formats = []format{{parse: parseJSON}, yamlFormat()}
	case '[':
		formats = []format{{parse: parseJSON}, {parse: parseTOML}, yamlFormat()}
	case '<':
		formats = []format{{parse: parseXML}}
	default:
		formats = []format{{parse: parseTOML}, yamlFormat()}
	}
	for _, f := range formats {
		if root, ok := f.parse(text); ok {
			return f, root
		}
	}
	return format{}, nil
}

// mark finds the secret values, and reports whether there are any.
func mark(root *value) bool {
	found := false
	walk(root, "", func(v *value, name string) {
		switch {
		case !v.scalar || v.text == redact.Mark:
		case redact.Secret(name, v.text):
			v.take()
		default:
			v.within()
		}
		found = found || v.secret
	})
	each(root, func(object *value) {
		for _, name := range wholly(object) {
			child := object.child(name)
			if child == nil {
				continue
			}
			each(child, func(v *value) {
				if v.scalar && v.text != "" && v.text != redact.Mark {
					v.take()
					found = true
				}
			})
		}
	})
	return found
}

func (v *value) take() { v.secret, v.clean = true, redact.Mark }

// within looks into a text that is a document of JSON itself: an annotation with
// what was applied.
func (v *value) within() {
	if v.encode == nil || len(v.text) < 2 || v.text[0] != '{' {
		return
	}
	root, ok := parseJSON([]byte(v.text))
	if !ok || !mark(root) {
		return
	}
	if clean, ok := replace([]byte(v.text), root); ok {
		v.secret, v.clean, v.mark = true, string(clean), v.encode(string(clean))
	}
}

// walk visits each value with the name that says what it is: its own, or that of
// the list or the plural that it is in.
func walk(v *value, name string, visit func(*value, string)) {
	visit(v, name)
	for _, child := range v.children {
		of := child.name
		if !v.object || of == "" {
			of = name
		} else if !redact.Secret(of, child.text) && isPlural(name) && of != "name" {
			of = name
		}
		walk(child, of, visit)
	}
}

// isPlural reports whether a name is that of several, whose values have names of
// their own: passwords.
func isPlural(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "passwords") || strings.HasSuffix(name, "tokens") || strings.HasSuffix(name, "keys")
}

func each(v *value, visit func(*value)) {
	visit(v)
	for _, child := range v.children {
		each(child, visit)
	}
}

// wholly are the fields of an object of which everything is secret: the data of a
// Secret, the private numbers of a JSON Web Key.
func wholly(object *value) []string {
	switch {
	case !object.object:
		return nil
	case object.field("kind") == "Secret":
		return []string{"data", "stringData"}
	case object.child("kty") != nil:
		return []string{"d", "p", "q", "dp", "dq", "qi", "k"}
	}
	return nil
}

func (v *value) child(name string) *value {
	at := slices.IndexFunc(v.children, func(child *value) bool { return child.name == name })
	if at < 0 {
		return nil
	}
	return v.children[at]
}

func (v *value) field(name string) string {
	if child := v.child(name); child != nil {
		return child.text
	}
	return ""
}

// replace writes the document with the marks in the places of the secrets.
func replace(text []byte, root *value) ([]byte, bool) {
	var secrets []*value
	each(root, func(v *value) {
		if v.secret {
			secrets = append(secrets, v)
		}
	})
	slices.SortFunc(secrets, func(a, b *value) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, v := range secrets {
		if v.start < at || v.end < v.start || v.end > len(text) {
			return nil, false
		}
		out = append(append(out, text[at:v.start]...), v.mark...)
		at = v.end
	}
	return append(out, text[at:]...), true
}
