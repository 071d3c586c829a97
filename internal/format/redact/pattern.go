package redact

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	// leastLiteral is the minimum number of bytes of a pattern besides * and ?. A pattern with
	// fewer would redact nearly everything.
	leastLiteral = 3
	// MaxPattern is the maximum length of a pattern, in bytes.
	MaxPattern = 256
	// MaxPatterns is the maximum number of patterns.
	MaxPatterns = 64
)

// pattern is the parts of a user's pattern between its stars, in lower case.
type pattern []string

func parsePattern(text string) (pattern, error) {
	literal := strings.NewReplacer("*", "", "?", "").Replace(text)
	switch {
	case strings.ContainsAny(text, "\r\n"):
		return nil, fmt.Errorf("the pattern %q has a line end: a pattern matches within one line", text)
	case len(literal) < leastLiteral:
		return nil, fmt.Errorf("the pattern %q is too short: it needs %d characters beside * and ?", text, leastLiteral)
	case len(text) > MaxPattern:
		return nil, fmt.Errorf("the pattern %.20q… is longer than %d bytes", text, MaxPattern)
	}
	text = strings.ToLower(text)
	for strings.Contains(text, "**") {
		text = strings.ReplaceAll(text, "**", "*")
	}
	return strings.Split(text, "*"), nil
}

// open reports whether the pattern ends in a star.
func (p pattern) open() bool { return len(p) > 1 && p[len(p)-1] == "" }

// at returns how many bytes at the beginning of the text the pattern matches, or 0. The last star
// matches as many bytes as possible, every other star as few as possible. If the pattern does not
// match, `skip` is the number of positions at which it need not be tried, including this position.
func (p pattern) at(text []byte) (length, skip int) {
	if !fits(p[0], text) {
		return 0, 1
	}
	length, skip = len(p[0]), 1
	for i, part := range p[1:] {
		last := i == len(p)-2
		if last && part == "" {
			return length + reach(text[length:]), 0
		}
		within, at := reach(text[length:min(len(text), length+overlap)]), -1 // later bytes may not have arrived
		for j := 0; j <= within && (at < 0 || last); j++ {
			if fits(part, text[length+j:]) {
				at = j
			}
		}
		if i == 0 && p[0] == "" { // the pattern begins with a star, which matches from the text's beginning
			skip = max(1, within)
			if at >= 0 {
				skip = at + 1
			}
		}
		if at < 0 {
			return 0, skip
		}
		length += at + len(part)
	}
	return length, 0
}

// fits reports whether the text begins with a part, in which ? matches any
// character except a space.
func fits(part string, text []byte) bool {
	if len(text) < len(part) {
		return false
	}
	for i := range len(part) {
		if c := lower(text[i]); c != part[i] && (part[i] != '?' || isSpace(c)) {
			return false
		}
	}
	return true
}

// reach returns how many bytes a star can match: up to a space or a double quote. Backslashes that
// escape the quote are excluded.
func reach(text []byte) int {
	for i, c := range text {
		switch {
		case isSpace(c):
			return i
		case c == '"':
			return len(bytes.TrimRight(text[:i], `\`))
		}
	}
	return len(text)
}

func endsStar(c byte) bool { return isSpace(c) || c == '"' }

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
