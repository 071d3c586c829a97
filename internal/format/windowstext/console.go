package windowstext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Console returns the text that a Windows program has printed to a pipe. Programs print UTF-8, or the code page of
// the machine's console or language, which the bytes do not name. Console takes the code page in which the text looks
// most like words; without one, it returns each byte beyond ASCII as \xNN. Text that is cut in the middle of a UTF-8
// character counts as UTF-8.
func Console(printed []byte) string {
	if text := uncut(string(printed)); utf8.ValidString(text) && (len(text) == len(printed) || !isASCII(text)) {
		return text
	}
	best, bestScore := "", 0
	for _, page := range []*charmap.Charmap{charmap.CodePage850, charmap.Windows1252, charmap.CodePage866} {
		if text, score := inPage(printed, page); score > bestScore {
			best, bestScore = text, score
		}
	}
	if best != "" {
		return best
	}
	return escaped(printed)
}

// Brief returns text in one line of readable length.
func Brief(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// uncut returns text without the halves of UTF-8 characters at its ends.
func uncut(text string) string {
	for i := 0; i < utf8.UTFMax-1 && text != "" && !utf8.RuneStart(text[0]); i++ {
		text = text[1:]
	}
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if end := text[len(text)-i:]; utf8.RuneStart(end[0]) && !utf8.FullRuneInString(end) {
			return text[:len(text)-i]
		}
	}
	return text
}

// inPage decodes bytes in a code page. score is 0 if the text has a sign that text rarely has, or a word in two
// scripts; otherwise it is higher for small letters, which most letters of a text are.
func inPage(printed []byte, page *charmap.Charmap) (text string, score int) {
	var b strings.Builder
	before := ' '
	for _, c := range printed {
		r := page.DecodeByte(c)
		switch {
		case unicode.IsLetter(r) && unicode.IsLetter(before) && unicode.In(r, unicode.Latin) != unicode.In(before, unicode.Latin):
			return "", 0
		case c < utf8.RuneSelf:
		case unicode.IsLower(r):
			score += 3
		case unicode.IsLetter(r):
			score++
		case !strings.ContainsRune("\u00a0¡¿«»“”‘’„…–—°", r):
			return "", 0
		}
		b.WriteRune(r)
		before = r
	}
	return b.String(), score
}

func escaped(printed []byte) string {
	var b strings.Builder
	for _, c := range printed {
		if c < utf8.RuneSelf {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02X`, c)
		}
	}
	return b.String()
}
