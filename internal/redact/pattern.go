package redact

import (
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

// pattern is one that a person gave, in lower case.
type pattern string

func parsePattern(text string) (pattern, error) {
	literal := strings.NewReplacer("*", "", "?", "").Replace(text)
	switch {
	case strings.ContainsAny(text, "\r\n"):
		return "", fmt.Errorf("the pattern %q has a line end in it: a pattern is looked for within a line", text)
	case len(literal) < leastLiteral:
		return "", fmt.Errorf("the pattern %q is too short: it needs %d characters beside * and ?", text, leastLiteral)
	case len(text) > MaxPattern:
		return "", fmt.Errorf("the pattern %.20q… is longer than %d bytes", text, MaxPattern)
	}
	return pattern(strings.ToLower(text)), nil
}

// at is how much of the text's beginning the pattern takes; 0: none. It takes as
// much as it can, as far as there are no spaces.
func (p pattern) at(text []byte) int {
	length := 0
	var match func(p pattern, from int) bool
	steps := 0
	match = func(p pattern, from int) bool {
		for len(p) > 0 {
			if steps++; steps > 1<<14 {
				return false // many stars on a long word
			}
			if p[0] == '*' {
				end := from
				for end < len(text) && !isSpace(text[end]) {
					end++
				}
				for ; end >= from; end-- {
					if match(p[1:], end) {
						return true
					}
				}
				return false
			}
			if from == len(text) || p[0] != lower(text[from]) && (p[0] != '?' || isSpace(text[from])) {
				return false
			}
			p, from = p[1:], from+1
		}
		length = from
		return true
	}
	match(p, 0)
	return length
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
