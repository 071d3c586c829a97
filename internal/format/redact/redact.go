// Package redact redacts secrets in text: private keys, tokens, passwords, connection strings,
// and the user's own patterns. The agent applies it to data that leaves the node, so it is
// written by hand, without package regexp. It holds a bounded part of the text at a time, and its
// result does not depend on how the text is split into pieces.
//
// It detects secrets by their form: a token with a typical prefix, a private key between its
// marker lines, the value of a name such as password. It cannot detect a secret that looks like a
// word and has none of these forms; for such secrets, users have their own patterns.
//
//   - redact.go: the API of the package
//   - stream.go: text in pieces; lines, keys of several lines, UTF-16
//   - after.go: values in the lines after their name
//   - scan.go: one line
//   - token.go: secrets detected by their own form
//   - url.go: passwords and tokens in URLs
//   - value.go: secrets detected by the name in front of them
//   - extent.go: where the values of value.go begin and end
//   - literal.go: literals with a prefix, and literals of SQL
//   - prose.go: sentences that mention the name of a secret
//   - member.go: objects and elements with the name of a secret, whose field value is the secret
//   - percent.go: texts in the encoding of URLs
//   - dump.go: hexadecimal dumps
//   - field.go: secrets whose name is the value of a field called name
//   - list.go: several values in brackets
//   - name.go: the names of secrets
//   - harmless.go: values of such names that are not secrets
//   - command.go: secrets detected by the program whose arguments they are
//   - beside.go: random words beside a word that means a secret
//   - pattern.go: the user's own patterns
//   - message.go: protobuf messages that are available only as bytes
//
// testdata/README.md describes the corpus of forms and the logs that it is tested on.
package redact

import "fmt"

// Mark replaces a secret. It is a plain word, so that YAML, JSON, XML and base64 stay valid with
// the mark in them.
const Mark = "REDACTED"

// Redactor redacts texts. It is safe for concurrent use.
type Redactor struct {
	patterns []pattern
}

// New returns a Redactor of all known kinds of secrets and of text that matches one of the
// patterns. A pattern is literal text in which * stands for any characters except spaces and double
// quotes. A ? stands for one character that is not a space.
func New(patterns []string) (*Redactor, error) {
	if len(patterns) > MaxPatterns {
		return nil, fmt.Errorf("%d patterns are more than %d", len(patterns), MaxPatterns)
	}
	r := &Redactor{}
	for _, text := range patterns {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		r.patterns = append(r.patterns, p)
	}
	return r, nil
}

// Bytes returns the text without its secrets.
func (r *Redactor) Bytes(text []byte) []byte {
	if len(text) == 0 {
		return text
	}
	s := r.Stream()
	out := append([]byte(nil), s.Next(text)...)
	return append(out, s.End()...)
}

// String is Bytes for a string.
func (r *Redactor) String(text string) string {
	if text == "" {
		return text
	}
	return string(r.Bytes([]byte(text)))
}

// Named returns the redacted value of a variable with a name, such as an environment variable or
// a registry value.
func (r *Redactor) Named(name string, value []byte) []byte {
	if k := kindOf(name); k != plain && len(value) > 0 && !harmless(value, k) {
		return []byte(Mark)
	}
	return r.Bytes(value)
}

// Keys in the metadata of a call. Metadata requests a redacted reply, and each value of
// MetadataPatterns is one of the user's patterns.
const (
	Metadata         = "swdt-redact"
	MetadataPatterns = "swdt-redact-pattern-bin"
)

// Secret reports whether the value of a variable or field with this name is a secret.
func Secret(name, value string) bool {
	k := kindOf(name)
	return k != plain && value != "" && !harmless([]byte(value), k)
}
