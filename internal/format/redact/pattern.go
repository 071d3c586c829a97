package redact

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	// leastLiteral is how much of a pattern must be text: with less it would
	// redact everything.
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

// at returns how much of the text's beginning the pattern matches, or 0. It
// matches as much as possible, as far as its stars reach. If it does not match,
// skip is how many places need not be tried, this one included.
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
		within, at := reach(text[length:min(len(text), length+overlap)]), -1 // later bytes may not be held
		for j := 0; j <= within && (at < 0 || last); j++ {
			if fits(part, text[length+j:]) {
				at = j
			}
		}
		if i == 0 && p[0] == "" { // a star comes first and matches from the beginning
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

// reach returns how far a star matches: up to a space, or up to the quote that ends a text. If the
// text is inside another text, that quote has backslashes before it.
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
