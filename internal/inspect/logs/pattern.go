package logs

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Pattern is a regular expression that lines must match. The node does not evaluate the
// expression, but searches for words. Every match contains at least one of these words. Thus
// the node sends few lines that do not match, and your machine applies the expression to the
// lines that it receives. Support for regular expressions would make the agent too large for
// its benefit.
type Pattern struct {
	re         *regexp.Regexp
	words      [][]byte // the words for which the node searches; empty: the node cannot filter
	ignoreCase bool
}

// Compile parses a regular expression in the syntax of Go's regexp (RE2).
func Compile(text string) (*Pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("parse the regular expression: %w", err)
	}
	p := &Pattern{re: re}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("parse the regular expression: %w", err)
	}
	n := needs{}
	words, ok := n.words(tree.Simplify())
	if !ok {
		return p, nil
	}
	p.ignoreCase = n.foldsCase
	for _, word := range words {
		if p.ignoreCase {
			word = strings.ToLower(word)
		}
		p.words = append(p.words, []byte(word))
	}
	return p, nil
}

// Match reports whether the line matches; a nil pattern matches every line.
func (p *Pattern) Match(line string) bool { return p == nil || p.re.MatchString(line) }

func (p *Pattern) String() string { return p.re.String() }

// Words returns the words for which the node searches.
func (p *Pattern) Words() (words [][]byte, ignoreCase bool) {
	if p == nil {
		return nil, false
	}
	return p.words, p.ignoreCase
}

// maxWords is the largest number of words: the node searches a line once for each word.
const maxWords = 16

// needs finds the words in a regular expression.
type needs struct{ foldsCase bool }

// words returns a list of words, and true if every match contains at least one of them. If it finds
// no such list, words returns false.
func (n *needs) words(re *syntax.Regexp) ([]string, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return n.literal(re)
	case syntax.OpCapture, syntax.OpPlus:
		return n.words(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return n.words(re.Sub[0])
		}
	case syntax.OpConcat:
		return n.best(re.Sub)
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			words, ok := n.words(sub)
			if !ok || len(all)+len(words) > maxWords {
				return nil, false
			}
			all = append(all, words...)
		}
		return all, true
	}
	return nil, false
}

// literal leaves out words that the node compares differently from a regular expression:
// words with letters beyond ASCII, if case is ignored. (The Kelvin sign and the long s are
// not found if case is ignored.)
func (n *needs) literal(re *syntax.Regexp) ([]string, bool) {
	word := string(re.Rune)
	folds := re.Flags&syntax.FoldCase != 0
	for _, r := range re.Rune {
		if r == '\n' || r == utf8.RuneError || folds && r >= utf8.RuneSelf {
			return nil, false
		}
	}
	n.foldsCase = n.foldsCase || folds
	return []string{word}, true
}

// best returns the words of one part of a sequence. It compares the shortest word of each
// part, and chooses the part in which this word is longest.
func (n *needs) best(parts []*syntax.Regexp) (best []string, ok bool) {
	longest, folds := 0, n.foldsCase
	chosen := folds
	for _, part := range parts {
		n.foldsCase = folds
		words, found := n.words(part)
		if length := shortest(words); found && length > longest {
			longest, best, chosen = length, words, n.foldsCase
		}
	}
	n.foldsCase = chosen
	return best, best != nil
}

func shortest(words []string) int {
	least := 0
	for i, word := range words {
		if i == 0 || len(word) < least {
			least = len(word)
		}
	}
	return least
}
