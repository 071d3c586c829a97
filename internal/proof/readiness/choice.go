package readiness

import (
	"fmt"
	"slices"
	"strings"
)

// Choice chooses cases. The zero Choice chooses all.
type Choice struct {
	Categories []string // empty: all
	IDs        []string // empty: all
	// Skip has categories, IDs, needs, BySpecs and ByProbes. A case that any of them names is left out.
	Skip []string
	// Classic chooses only cases with a classic test case.
	Classic bool
}

// The ways in which cases are proved, as words of Choice.Skip.
const (
	BySpecs  = "specs"
	ByProbes = "probes"
)

// UnknownError reports a word of a Choice that names nothing.
type UnknownError struct {
	Kind  string // category, need or case
	Word  string
	Known []string // the words that are known
}

func (e *UnknownError) Error() string {
	known := e.Known
	if len(known) > mostListed {
		known = append(slices.Clone(known[:mostListed]), "…")
	}
	return fmt.Sprintf("there is no %s %q: use %s; `swdt readiness list` lists them", e.Kind, e.Word,
		strings.Join(known, ", "))
}

// mostListed bounds the words that an error lists.
const mostListed = 25

// NothingError reports that a Choice chooses no case.
type NothingError struct{}

func (*NothingError) Error() string {
	return "these filters leave no case; `swdt readiness list` lists all"
}

// Choose returns the chosen cases, at least one. The error is an *UnknownError or a *NothingError.
func (c Choice) Choose(all []Case) (chosen []Case, err error) {
	if err := c.check(all); err != nil {
		return nil, err
	}
	for _, one := range all {
		if c.chooses(one) {
			chosen = append(chosen, one)
		}
	}
	if len(chosen) == 0 {
		return nil, &NothingError{}
	}
	return chosen, nil
}

func (c Choice) chooses(one Case) bool {
	switch {
	case len(c.Categories) > 0 && !slices.Contains(c.Categories, one.Category):
		return false
	case len(c.IDs) > 0 && !slices.Contains(c.IDs, one.ID):
		return false
	case c.Classic && one.Classic.ID == "":
		return false
	}
	return !slices.ContainsFunc(c.Skip, func(word string) bool {
		return word == one.ID || word == one.Category || slices.Contains(one.Needs, word) ||
			word == one.way()
	})
}

// CheckNeeds returns an *UnknownError if one of the words is not something that a case can need.
func CheckNeeds(words []string) error {
	for _, word := range words {
		if !slices.Contains(Needs(), word) {
			return &UnknownError{Kind: "need", Word: word, Known: Needs()}
		}
	}
	return nil
}

// way returns the way in which the case is proved.
func (c Case) way() string {
	if c.Probe != "" {
		return ByProbes
	}
	return BySpecs
}

func (c Choice) check(all []Case) error {
	var ids []string
	for _, one := range all {
		ids = append(ids, one.ID)
	}
	for _, words := range []struct {
		kind         string
		given, known []string
	}{
		{"category", c.Categories, Categories()},
		{"case", c.IDs, ids},
		{"category, need or case", c.Skip, slices.Concat([]string{BySpecs, ByProbes}, Categories(), Needs(), ids)},
	} {
		for _, word := range words.given {
			if !slices.Contains(words.known, word) {
				return &UnknownError{Kind: words.kind, Word: word, Known: words.known}
			}
		}
	}
	return nil
}
