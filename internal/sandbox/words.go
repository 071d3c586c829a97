package sandbox

import "strings"

// condition decides when a part of a command line runs.
type condition int

const (
	always condition = iota
	ifOK
	ifFailed
)

// part is one command of a command line.
type part struct {
	when condition
	text string
}

// splitLine splits a line, as far as clients of a first contact need it ("cmd" and about_Operators on learn.microsoft.com,
// bash(1)), at &&, ||, & (cmd) and ; (PowerShell, bash) outside quotes.
func splitLine(kind shellKind, line string) []part {
	var parts []part
	when, begin := always, 0
	cut := func(end, length int, next condition) {
		parts = append(parts, part{when, strings.TrimSpace(line[begin:end])})
		when, begin = next, end+length
	}
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case kind.quotes(c):
			quote = c
		case strings.HasPrefix(line[i:], "&&"):
			cut(i, 2, ifOK)
			i++
		case strings.HasPrefix(line[i:], "||"):
			cut(i, 2, ifFailed)
			i++
		case c == '&' && kind == shellCmd && !strings.HasSuffix(line[:i], ">"),
			c == ';' && kind != shellCmd:
			cut(i, 1, always)
		}
	}
	cut(len(line), 0, always)
	return parts
}

// quotes reports whether the character begins a quoted part of a line.
func (k shellKind) quotes(c byte) bool { return c == '"' || c == '\'' && k != shellCmd }

// splitWords splits a command into words and removes their quotes (about_Quoting_Rules; bash(1), QUOTING).
func splitWords(kind shellKind, text string) []string {
	var words []string
	var word strings.Builder
	quote, begun := byte(0), false
	end := func() {
		if begun {
			words = append(words, word.String())
			word.Reset()
			begun = false
		}
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && kind == shellBash && quote == 0 && i+1 < len(text):
			i++ // bash removes the backslash and takes the next character as it is
			word.WriteByte(text[i])
			begun = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case kind.quotes(c):
			quote, begun = c, true
		case c == ' ' || c == '\t':
			end()
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	end()
	return words
}
