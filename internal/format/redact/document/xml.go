package document

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/redact"
)

// parseXML parses a document: elements and their attributes are named values.
func parseXML(text []byte) (*value, bool) {
	p := xmlParser{text: text, decoder: xml.NewDecoder(bytes.NewReader(text))}
	p.decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	p.open = []*value{{object: true}}
	for {
		start := int(p.decoder.InputOffset())
		token, err := p.decoder.RawToken()
		if errors.Is(err, io.EOF) {
			return p.open[0], len(p.open) == 1 && len(p.open[0].children) > 0
		}
		if err != nil || !p.handle(token, start) {
			return nil, false
		}
	}
}

type xmlParser struct {
	text    []byte
	decoder *xml.Decoder
	open    []*value // the open elements, the document first
}

func (p *xmlParser) handle(token xml.Token, start int) bool {
	end := int(p.decoder.InputOffset())
	parent := p.open[len(p.open)-1]
	switch token := token.(type) {
	case xml.StartElement:
		element := &value{name: token.Name.Local, object: true}
		parent.children = append(parent.children, element)
		p.open = append(p.open, element)
		return p.attributes(element, token.Attr, start, end)
	case xml.EndElement:
		if len(p.open) == 1 {
			return false
		}
		p.open = p.open[:len(p.open)-1]
	case xml.CharData:
		content := strings.TrimSpace(string(token))
		if content == "" || len(p.open) == 1 {
			return true
		}
		mark := redact.Mark
		parent.children = append(parent.children, &value{name: parent.name, scalar: true, text: content, start: start,
			end: end, mark: mark, encode: escapeXML})
	}
	return true
}

func escapeXML(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // writing to a strings.Builder cannot fail
	return out.String()
}

// attributes finds the positions of attribute values in the text of a tag.
func (p *xmlParser) attributes(element *value, attributes []xml.Attr, start, end int) bool {
	at := start
	for _, attribute := range attributes {
		n := bytes.IndexAny(p.text[at:end], `"'`)
		if n < 0 {
			return false
		}
		begin := at + n + 1
		length := bytes.IndexByte(p.text[begin:end], p.text[begin-1])
		if length < 0 {
			return false
		}
		at = begin + length + 1
		element.children = append(element.children, &value{name: attribute.Name.Local, scalar: true,
			text: attribute.Value, start: begin, end: begin + length, mark: redact.Mark, encode: escapeXML})
	}
	return true
}
