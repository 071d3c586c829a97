// Package redact takes secrets out of text: private keys, tokens, passwords,
// connection strings, and what a person names. The agent applies it to what
// leaves the node, so it is written by hand, holds a bounded part of the text at
// a time, and gives the same result however the text arrives in pieces.
//
// What it knows it knows by form: a token that says what it is, a private key
// between its lines, the value of something that is called password. A secret
// that looks like a word and stands behind none of these is not found; that is
// what a pattern of one's own is for.
//
//   - redact.go: what others use
//   - stream.go: text in pieces; lines, keys of several lines, UTF-16
//   - after.go: values that are in the lines behind their name
//   - scan.go: one line
//   - token.go: secrets that are known by their own form
//   - url.go: passwords and tokens in URLs
//   - value.go: secrets that are known by the name in front of them
//   - take.go: where their values begin and end
//   - field.go: secrets whose name is the value of a field called name
//   - list.go: several of them in brackets
//   - name.go: which names those are
//   - harmless.go: which of their values are none
//   - command.go: secrets that are known by the program they are given to
//   - beside.go: random words beside one that speaks of secrets
//   - pattern.go: what a person names
//   - message.go: protobuf messages of which only the bytes are at hand
//
// testdata/README.md describes the corpus of forms and the logs that it is tested on.
package redact

import "fmt"

// Mark stands in the place of a secret. It is a plain word, so that YAML, JSON,
// XML and base64 with it in them are still what they were.
const Mark = "REDACTED"

// Redactor takes secrets out of texts. It may be used by several at a time.
type Redactor struct {
	patterns []pattern
}

// New takes out what is known to be a secret, and what fits one of the patterns:
// text as it is, in which * stands for any characters but spaces and ", ? for one
// that is no space.
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

// Bytes is the text without its secrets.
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

// Named is the value of something that has a name: an environment variable, a
// value of the registry.
func (r *Redactor) Named(name string, value []byte) []byte {
	if k := kindOf(name); k != plain && len(value) > 0 && !harmless(value, k) {
		return []byte(Mark)
	}
	return r.Bytes(value)
}

// Metadata of a call that asks the agent to redact its answer, and the patterns,
// one a value.
const (
	Metadata         = "swdt-redact"
	MetadataPatterns = "swdt-redact-pattern-bin"
)

// Secret reports whether the value of something with this name is a secret.
func Secret(name, value string) bool {
	k := kindOf(name)
	return k != plain && value != "" && !harmless([]byte(value), k)
}
