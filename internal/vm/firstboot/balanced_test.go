package firstboot_test

import (
	"fmt"
	"strings"
	"testing"
)

// balanced returns an error unless all brackets, quotes and here-strings of a PowerShell
// script are closed. It is no parser: it stands in for one, which no package of Debian
// has. It expects no brackets within double quotes, as $(…) has.
func balanced(script string) error {
	var open []byte
	line := 1
	for at := 0; at < len(script); at++ {
		rest := script[at:]
		switch c := script[at]; {
		case c == '\n':
			line++
		case strings.HasPrefix(rest, "@'\n"):
			end := strings.Index(rest, "\n'@")
			if end < 0 {
				return fmt.Errorf("line %d: a here-string without end", line)
			}
			line += strings.Count(rest[:end+1], "\n")
			at += end + len("\n'@") - 1
		case c == '#':
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			at += end - 1
		case c == '`':
			if at+1 < len(script) && script[at+1] == '\n' {
				line++
			}
			at++
		case c == '\'' || c == '"':
			length, err := quoted(rest)
			if err != nil {
				return fmt.Errorf("line %d: %w", line, err)
			}
			at += length - 1
		case strings.IndexByte("([{", c) >= 0:
			open = append(open, c)
		case strings.IndexByte(")]}", c) >= 0:
			if len(open) == 0 || strings.IndexByte("([{", open[len(open)-1]) != strings.IndexByte(")]}", c) {
				return fmt.Errorf("line %d: %c closes nothing of its kind", line, c)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%q is never closed", open)
	}
	return nil
}

// quoted returns the length of a quoted string of one line.
func quoted(text string) (int, error) {
	quote := text[0]
	for at := 1; at < len(text); at++ {
		switch {
		case text[at] == '\n':
			return 0, fmt.Errorf("a quote %c that its line does not close", quote)
		case quote == '"' && text[at] == '`':
			at++
		case text[at] == quote && at+1 < len(text) && text[at+1] == quote:
			at++
		case text[at] == quote:
			return at + 1, nil
		}
	}
	return 0, fmt.Errorf("a quote %c without end", quote)
}

func TestBalanced(t *testing.T) {
	for _, script := range []string{
		"", "if ($a) { 'it''s' } # }", "@'\n { ' \" \n'@\n{}", "\"`\"{\"", "a `\n -b", "[x]::y('(')",
	} {
		if err := balanced(script); err != nil {
			t.Errorf("%q: %v", script, err)
		}
	}
	for _, script := range []string{"{", "}", "(]", "'", "\"a\n\"", "@'\n", "'a''", "{ # }"} {
		if balanced(script) == nil {
			t.Errorf("%q passes", script)
		}
	}
}
