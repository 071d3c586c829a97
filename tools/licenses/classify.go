package main

import (
	"fmt"
	"slices"

	licenseclassifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// classifier names the licences of texts.
type classifier struct {
	known *licenseclassifier.Classifier
}

func newClassifier() (*classifier, error) {
	known, err := assets.DefaultClassifier()
	if err != nil {
		return nil, fmt.Errorf("load the known licences: %w", err)
	}
	return &classifier{known: known}, nil
}

// of returns the SPDX identifiers of the licences in a text, sorted; none: the text is unknown.
func (c *classifier) of(content []byte) []string {
	var names []string
	for _, match := range c.known.Match(content).Matches {
		if match.MatchType == "License" || match.MatchType == "Header" {
			names = append(names, match.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
