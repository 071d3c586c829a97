package document

import (
	"bytes"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/redact"
)

// Largest is the size of the largest document that is parsed as a whole, in bytes. Parsing takes up to 100 times as
// much memory.
const Largest = 2 << 20

// value is a part of a document: an object with named values, a list, or a text.
type value struct {
	name     string
	text     string // text of a scalar, without quotes and escapes
	scalar   bool
	object   bool
	list     bool
	children []*value

	start, end int    // position of a scalar in the document
	mark       string // the replacement of a secret in the document
	secret     bool
	clean      string              // the text without secrets; for formats that write a new document
	encode     func(string) string // encodes `clean` for the document; nil: documents inside text are not parsed
}

// format parses and writes documents of one kind.
type format struct {
	// parse returns the values of a document; ok is false if the text is not a document of this
	// kind.
	parse func(text []byte) (root *value, ok bool)
	// apply writes the document without the secret values. If apply is nil, the function replace
	// puts the marks at the positions of the secret values.
	apply func(text []byte, root *value) ([]byte, bool)
	// repair quotes the marks that a scan of lines put in place of secrets, so that the
	// document is valid again; nil: the format accepts marks without quotes.
	repair func(text []byte) []byte
}

// read parses a document, and repairs it if necessary. It returns the text that it parsed.
func (f format) read(text []byte) (parsed []byte, root *value, ok bool) {
	if root, ok = f.parse(text); ok || f.repair == nil || !bytes.Contains(text, []byte(redact.Mark)) {
		return text, root, ok
	}
	repaired := f.repair(text)
	root, ok = f.parse(repaired)
	return repaired, root, ok
}

// Redact redacts the secrets that redact.Redactor finds in a text and, if the text is a document,
// the secrets that the document's structure shows. The result for a document is a document in which
// only values differ, unless a value looks as if it continued beyond its end. The result `parsed`
// reports whether Redact has used the structure. It has not if the text is not a document, if the
// text is larger than Largest and not JSON, or if the result would not be a document.
func Redact(r *redact.Redactor, text []byte) (clean []byte, parsed bool) {
	if len(text) > Largest {
		return redactLarge(r, text, Largest)
	}
	f, text, before := parse(text)
	clean = r.Bytes(text)
	if before == nil {
		return clean, false
	}
	repaired, after, ok := f.read(clean)
	if !ok || !sameStructure(before, after) {
		before, _ = f.parse(text) // parse again, since a format may keep its last parse
		return redactValues(r, f, text, before, clean)
	}
	if !mark(after, "") {
		return repaired, true
	}
	if redacted, ok := f.write(repaired, after); ok {
		return redacted, true
	}
	return repaired, false
}

// redactValues redacts each value of a document separately. It is used when a scan of the
// document's lines has mistaken a part of the document for a part of a value. If a scan of the new
// result still finds a secret, redactValues returns its last parameter, the result of the first
// scan, since a leaked secret is worse than a damaged document.
func redactValues(r *redact.Redactor, f format, text []byte, root *value,
	otherwise []byte) (clean []byte, parsed bool) {
	mark(root, "")
	each(root, func(v *value) {
		if v.secret || !v.scalar || v.encode == nil {
			return
		}
		if clean := r.String(v.text); clean != v.text {
			v.secret, v.clean, v.mark = true, clean, v.encode(clean)
		}
	})
	if redacted, ok := f.write(text, root); ok && bytes.Equal(r.Bytes(redacted), redacted) {
		return redacted, true
	}
	return otherwise, false
}

// sameStructure reports whether two documents have the same names and lists.
func sameStructure(a, b *value) bool {
	if len(a.children) != len(b.children) || a.name != b.name || a.object != b.object || a.list != b.list {
		return false
	}
	for i := range a.children {
		if !sameStructure(a.children[i], b.children[i]) {
			return false
		}
	}
	return true
}

// write writes a document without its secret values; ok is false if the result would not be a document.
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

// parse parses a document of any format. It returns the format, the parsed text and the values. A
// repair may have changed the parsed text. root is nil if the text is not a document.
func parse(text []byte) (f format, parsed []byte, root *value) {
	trimmed := bytes.TrimLeft(text, " \t\r\n\xef\xbb\xbf")
	if len(trimmed) == 0 {
		return format{}, text, nil
	}
	tomlFormat := format{parse: parseTOML, repair: quoteMarks}
	var formats []format
	switch trimmed[0] {
	case '{':
		formats = []format{{parse: parseJSON}, yamlFormat()}
	case '[':
		formats = []format{{parse: parseJSON}, tomlFormat, yamlFormat()}
	case '<':
		formats = []format{{parse: parseXML}}
	default:
		formats = []format{tomlFormat, yamlFormat()}
	}
	for _, f := range formats {
		if parsed, root, ok := f.read(text); ok {
			return f, parsed, root
		}
	}
	return format{}, text, nil
}

// mark marks the secret values of a document or of a named part of a document. It reports whether
// there are any.
func mark(root *value, name string) bool {
	found := false
	walk(root, name, func(v *value, name string) {
		switch {
		case !v.scalar || v.text == redact.Mark:
		case redact.Secret(name, v.text):
			v.redact()
		default:
			v.redactNested()
		}
		found = found || v.secret
	})
	each(root, func(object *value) {
		for _, name := range secretFields(object) {
			child := object.child(name)
			if child == nil {
				continue
			}
			each(child, func(v *value) {
				if v.scalar && v.text != "" && v.text != redact.Mark {
					v.redact()
					found = true
				}
			})
		}
	})
	return found
}

func (v *value) redact() { v.secret, v.clean = true, redact.Mark }

// redactNested redacts a text that is itself a JSON document, such as the annotation in which
// kubectl keeps the applied object.
func (v *value) redactNested() {
	if v.encode == nil || len(v.text) < 2 || v.text[0] != '{' {
		return
	}
	root, ok := parseJSON([]byte(v.text))
	if !ok || !mark(root, "") {
		return
	}
	if clean, ok := replace([]byte(v.text), root); ok {
		v.secret, v.clean, v.mark = true, string(clean), v.encode(string(clean))
	}
}

// walk visits each value with the name that describes the value. For a member of an object, see
// nameWithin; the values in a list have the name of the list.
func walk(v *value, name string, visit func(*value, string)) {
	visit(v, name)
	for _, child := range v.children {
		of := child.name
		if !v.object || of == "" {
			of = name
		} else {
			of = nameWithin(name, of, child.text)
		}
		walk(child, of, visit)
	}
}

// nameWithin returns the name that describes a value in an object. If the object has a plural name,
// such as passwords, and `own` is neither "name" nor the name of a secret, the result is the
// object's name. So it is if `own` is the name of the object's value, such as value. If not, the result is `own`.
func nameWithin(outer, own, text string) string {
	if redact.Member(outer, own) {
		return outer
	}
	if isPlural(outer) && own != "name" && !redact.Secret(own, text) {
		return outer
	}
	return own
}

// isPlural reports whether a name, such as passwords, means several values that have names
// themselves.
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

// secretFields returns the fields of an object that are secret as a whole: the data of a Secret, or
// the private numbers of a JSON Web Key.
func secretFields(object *value) []string {
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

// replace writes the document with the marks in place of the secrets.
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
