package cli

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// prose breaks the lines of a text's paragraphs anew, so that none is wider than helpWidth unless a word is. A paragraph
// with an indented line, such as a list or a table, stays as it is.
func prose(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, paragraph := range paragraphs {
		if !strings.HasPrefix(paragraph, " ") && !strings.Contains(paragraph, "\n ") {
			paragraphs[i] = filled(strings.Fields(paragraph))
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// filled returns the words in lines of at most helpWidth columns.
func filled(words []string) string {
	var b strings.Builder
	column := 0
	for i, word := range words {
		width := runewidth.StringWidth(word)
		switch {
		case i == 0:
		case column+1+width > helpWidth:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += width
	}
	return b.String()
}
