package document

import (
	"bytes"
	"regexp"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/swdt-dev/swdt/internal/format/redact"
)

// parseTOML parses a document. It ignores the names of tables: only the key before a value is the
// value's name.
func parseTOML(text []byte) (*value, bool) {
	var p unstable.Parser
	p.Reset(text)
	root := &value{object: true}
	for p.NextExpression() {
		if e := p.Expression(); e.Kind == unstable.KeyValue {
			root.children = append(root.children, tomlNamed(e))
		}
	}
	return root, p.Error() == nil && len(root.children) > 0
}

func tomlNamed(node *unstable.Node) *value {
	v := tomlValue(node.Value())
	for key := node.Key(); key.Next(); {
		v.name = string(key.Node().Data) // the last part of a dotted key
	}
	return v
}

func tomlValue(node *unstable.Node) *value {
	v := &value{encode: quoteJSON} // TOML accepts JSON's escapes
	switch node.Kind {
	case unstable.Array, unstable.InlineTable:
		v.object, v.list = node.Kind == unstable.InlineTable, node.Kind == unstable.Array
		for children := node.Children(); children.Next(); {
			child := children.Node()
			if child.Kind == unstable.KeyValue {
				v.children = append(v.children, tomlNamed(child))
			} else {
				v.children = append(v.children, tomlValue(child))
			}
		}
	case unstable.String, unstable.Integer, unstable.Float:
		v.scalar, v.text, v.mark = true, string(node.Data), `"`+redact.Mark+`"`
		v.start, v.end = int(node.Raw.Offset), int(node.Raw.Offset+node.Raw.Length)
		v.scalar = node.Raw.Length > 0
	}
	return v
}

// quoteMarks quotes the marks that a scan of lines put in place of numbers, since TOML has no
// bare words. The pattern also matches whole strings and comments, so that the marks in them stay
// unchanged.
func quoteMarks(text []byte) []byte {
	token := regexp.MustCompile(`(?s)'''.*?'''|"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|\b` +
		redact.Mark + `\b`)
	return token.ReplaceAllFunc(text, func(found []byte) []byte {
		if bytes.Equal(found, []byte(redact.Mark)) {
			return []byte(quotedMark)
		}
		return found
	})
}
