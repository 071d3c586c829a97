package redact

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	// leastLiteral is how much of a pattern must be text: less would take out
	// everything.
	leastLiteral = 3
	// MaxPattern is the longest pattern, bytes.
	MaxPattern = 256
	// MaxPatterns is how many patterns there may be.
	MaxPatterns = 64
)

// pattern is what stands between the stars of one that a person gave, in lower
// case.
type pattern []string

func parsePattern(text string) (pattern, error) {
	literal := strings.NewReplacer("*", "", "?", "").Replace(text)
	switch {
	case strings.ContainsAny(text, "\r\n"):
		return nil, fmt.Errorf("the pattern %q has a line end in it: a pattern is looked for within a line", text)
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

// open is whether it ends in a star.
func (p pattern) open() bool { return len(p) > 1 && p[len(p)-1] == "" }

// at is how much of the text's beginning the pattern takes; 0: none. It takes as
// much as it can, as far as its stars reach. Where it takes none, so many places
// need not be tried, this one among them.
func (p pattern) at(text []byte) (length, barren int) {
	if !fits(p[0], text) {
		return 0, 1
	}
	length, barren = len(p[0]), 1
	for i, part := range p[1:] {
		last := i == len(p)-2
		if last && part == "" {
			return length + reach(text[length:]), 0
		}
		within, at := reach(text[length:min(len(text), length+overlap)]), -1 // more is not sure to be held
		for j := 0; j <= within && (at < 0 || last); j++ {
			if fits(part, text[length+j:]) {
				at = j
			}
		}
		if i == 0 && p[0] == "" { // a star comes first: it was tried all along
			barren = max(1, within)
			if at >= 0 {
				barren = at + 1
			}
		}
		if at < 0 {
			return 0, barren
		}
		length += at + len(part)
	}
	return length, 0
}

// fits is whether the text begins with a part, in which ? is any character but a
// space.
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

// reach is how far a star does: to a space, or to the quote that ends a text, which
// has backslashes where that is within another.
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
