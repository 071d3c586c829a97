package yamledit

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// lines are the lines of a text. Line numbers and columns are from 1, as those of yaml.Node; columns count characters.
type lines struct {
	body   []byte
	starts []int // offsets
}

func newLines(body []byte) lines {
	l := lines{body: body, starts: []int{0}}
	for i, b := range body {
		if b == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// start returns the offset of a line; for one behind the last, the end of the text.
func (l lines) start(line int) int {
	if line > len(l.starts) {
		return len(l.body)
	}
	return l.starts[line-1]
}

// end returns the offset behind a line and its line end.
func (l lines) end(line int) int { return l.start(line + 1) }

// at returns the offset of a node.
func (l lines) at(n *yaml.Node) int {
	offset := l.start(n.Line)
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(l.body[offset:])
		offset += size
	}
	return offset
}

// newline returns the line end of the text.
func (l lines) newline() string {
	if bytes.Contains(l.body, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// lastLine returns the last line of a pair in block style: that before the next line which has no more indentation than
// the key. Empty lines and comments at the end belong to what follows, unless they are a part of a text in lines.
func (l lines) lastLine(key, value *yaml.Node) int {
	last := max(key.Line, value.Line)
	inText := value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	isList := value.Kind == yaml.SequenceNode && value.Style&yaml.FlowStyle == 0
	for line := last + 1; line <= len(l.starts); line++ {
		text := string(bytes.TrimRight(l.body[l.start(line):l.end(line)], "\r\n"))
		trimmed := strings.TrimLeft(text, " ")
		indent := len(text) - len(trimmed)
		comment := strings.HasPrefix(trimmed, "#")
		switch {
		case trimmed == "" || comment && !(inText && indent >= key.Column):
		case indent >= key.Column, isList && indent == key.Column-1 && (trimmed == "-" || strings.HasPrefix(trimmed, "- ")):
			last = line
		default:
			return last
		}
	}
	return last
}

// withComments returns the first line of the comments directly above a key, or the key's own line.
func (l lines) withComments(key *yaml.Node) int {
	line := key.Line
	for ; line > 1; line-- {
		above := string(l.body[l.start(line-1):l.start(line)])
		if trimmed := strings.TrimLeft(above, " "); !strings.HasPrefix(trimmed, "#") || len(above)-len(trimmed) != key.Column-1 {
			break
		}
	}
	return line
}

// afterColon returns the offset behind the colon of a key.
func (l lines) afterColon(key *yaml.Node) int {
	end, _ := l.scalarEnd(key)
	if colon := bytes.IndexByte(l.body[end:], ':'); colon >= 0 {
		return end + colon + 1
	}
	return end
}

// scalarEnd returns the offset behind a scalar on one line.
func (l lines) scalarEnd(n *yaml.Node) (end int, ok bool) {
	begin := l.at(n)
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0:
		return begin, false
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		end, ok = l.quoteEnd(begin)
		return end, ok && !slices.Contains(l.body[begin:end], '\n')
	}
	return begin + len(n.Value), bytes.HasPrefix(l.body[begin:], []byte(n.Value))
}

// quoteEnd returns the offset behind the quoted text that begins at an offset.
func (l lines) quoteEnd(begin int) (end int, ok bool) {
	quote := l.body[begin]
	for i := begin + 1; i < len(l.body); i++ {
		switch {
		case quote == '"' && l.body[i] == '\\':
			i++
		case l.body[i] == quote && quote == '\'' && i+1 < len(l.body) && l.body[i+1] == quote:
			i++
		case l.body[i] == quote:
			return i + 1, true
		}
	}
	return begin, false
}

// flowEnd returns the offset behind the pair of a mapping in braces that begins at an offset, without the spaces behind
// it: that of the comma or the brace that ends it.
func (l lines) flowEnd(begin int) (end int, ok bool) {
	depth, last := 0, begin
	for i := begin; i < len(l.body); i++ {
		switch b := l.body[i]; {
		case (b == '"' || b == '\'') && isTokenStart(l.body[i-1]):
			if i, ok = l.quoteEnd(i); !ok {
				return begin, false
			}
			i--
		case b == '{' || b == '[':
			depth++
		case depth == 0 && (b == ',' || b == '}'):
			return last, true
		case b == '}' || b == ']':
			depth--
		case b == ' ' || b == '\n' || b == '\r' || b == '\t':
			continue
		}
		last = i + 1
	}
	return begin, false
}

// isTokenStart reports whether a quote behind a byte begins a quoted text, and is no part of a plain one.
func isTokenStart(before byte) bool { return strings.IndexByte(" \t\r\n{[,:", before) >= 0 }
