package document

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/redact"
)

const quotedMark = `"` + redact.Mark + `"`

// parseJSON parses one document, or several in succession.
func parseJSON(text []byte) (*value, bool) {
	p := jsonParser{text: text, decoder: json.NewDecoder(bytes.NewReader(text))}
	p.decoder.UseNumber()
	root := &value{}
	for p.decoder.More() {
		v, ok := p.value()
		if !ok {
			return nil, false
		}
		root.children = append(root.children, v)
	}
	return root, len(root.children) > 0 && len(bytes.TrimSpace(text[p.decoder.InputOffset():])) == 0
}

func quoteJSON(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // encoding a string cannot fail
	return strings.TrimSuffix(out.String(), "\n")
}

type jsonParser struct {
	text    []byte
	decoder *json.Decoder
}

// token returns the next token and where it begins.
func (p *jsonParser) token() (token json.Token, start int, ok bool) {
	start = int(p.decoder.InputOffset())
	token, err := p.decoder.Token()
	for start < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[start]) >= 0 {
		start++
	}
	return token, start, err == nil
}

func (p *jsonParser) value() (*value, bool) {
	token, start, ok := p.token()
	if !ok {
		return nil, false
	}
	switch token := token.(type) {
	case json.Delim:
		return p.collection(token)
	case string:
		return &value{scalar: true, text: token, start: start, end: int(p.decoder.InputOffset()), mark: quotedMark,
			encode: quoteJSON}, true
	case json.Number:
		return &value{scalar: true, text: token.String(), start: start, end: int(p.decoder.InputOffset()),
			mark: quotedMark}, true
	}
	return &value{}, true // true, false, null
}

func (p *jsonParser) collection(open json.Delim) (*value, bool) {
	v := &value{object: open == '{', list: open == '['}
	for p.decoder.More() {
		name := ""
		if v.object {
			key, _, ok := p.token()
			text, isText := key.(string)
			if !ok || !isText {
				return nil, false
			}
			name = text
		}
		child, ok := p.value()
		if !ok {
			return nil, false
		}
		child.name = name
		v.children = append(v.children, child)
	}
	_, _, ok := p.token()
	return v, ok
}
