package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// pattern is a phrase to avoid.
type pattern struct {
	name   string
	match  *regexp.Regexp // within one sentence
	except []*regexp.Regexp
	write  string // the proposed form
	hits   []string
	misses []string
}

// readPatterns reads a file of patterns: the name of each in a line, followed by
// indented lines with a keyword and its value. The examples of each pattern must
// hold.
func readPatterns(path string) ([]pattern, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var patterns []pattern
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			continue
		case line[0] != ' ':
			patterns = append(patterns, pattern{name: line})
			continue
		case len(patterns) == 0:
			return nil, fmt.Errorf("%s:%d: begin with the name of a pattern, not indented", path, i+1)
		}
		if err := patterns[len(patterns)-1].set(strings.TrimSpace(line)); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	for _, p := range patterns {
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return patterns, nil
}

func (p *pattern) set(line string) error {
	keyword, value, _ := strings.Cut(line, " ")
	value = strings.TrimSpace(value)
	switch keyword {
	case "match", "except":
		expression, err := regexp.Compile("(?i)" + value)
		if err != nil {
			return err
		}
		if keyword == "match" {
			p.match = expression
		} else {
			p.except = append(p.except, expression)
		}
	case "write":
		p.write = value
	case "hit":
		p.hits = append(p.hits, value)
	case "miss":
		p.misses = append(p.misses, value)
	default:
		return fmt.Errorf("unknown keyword %q; known are match, except, write, hit and miss", keyword)
	}
	return nil
}

// check checks that the pattern is complete and fits its own examples.
func (p *pattern) check() error {
	if p.match == nil || p.write == "" || len(p.hits) == 0 || len(p.misses) == 0 {
		return fmt.Errorf("%s needs match, write, and at least one hit and one miss", p.name)
	}
	for _, example := range p.hits {
		if len(p.find("", paragraph(example))) == 0 {
			return fmt.Errorf("%s does not match its example %q", p.name, example)
		}
	}
	for _, example := range p.misses {
		if len(p.find("", paragraph(example))) > 0 {
			return fmt.Errorf("%s matches %q, which is listed as a miss", p.name, example)
		}
	}
	return nil
}

// find returns the places where the pattern matches in a text, sentence by sentence.
func (p *pattern) find(file string, text passage) []finding {
	var found []finding
	for _, s := range text.sentences() {
		sentence := text.words[s.from:s.to]
		for _, at := range p.match.FindAllStringIndex(sentence, -1) {
			if !p.excepted(sentence, at) {
				found = append(found, finding{file, text.line(s.from + at[0]), sentence[at[0]:at[1]]})
			}
		}
	}
	return found
}

// excepted reports whether an exception covers the whole match.
func (p *pattern) excepted(sentence string, match []int) bool {
	for _, expression := range p.except {
		for _, at := range expression.FindAllStringIndex(sentence, -1) {
			if at[0] <= match[0] && match[1] <= at[1] {
				return true
			}
		}
	}
	return false
}
