package config

import (
	"fmt"
	"slices"
	"strings"
)

// Select returns the documents that match --node and --selector, in the order of
// documents. If only one of the two is given, only that one must match; if both are
// empty, all documents match. The selector has kubectl's syntax: labels k=v, k==v, k!=v,
// k, !k, separated by commas. The error is an *Error.
func Select(documents []Document, names []string, selector string) ([]Document, error) {
	problems := unknownNames(documents, names)
	requirements, found := parseSelector(selector)
	if err := asError(append(problems, found...)); err != nil {
		return nil, err
	}

	var selected []Document
	for _, document := range documents {
		named := len(names) == 0 || slices.Contains(names, document.Node.Metadata.Name)
		if named && fits(document.Node.Metadata.Labels, requirements) {
			selected = append(selected, document)
		}
	}
	if len(selected) == 0 {
		return nil, &Error{[]Problem{{
			Field: "--selector", What: fmt.Sprintf("no node has the labels %q", selector),
			Remedy: "there are: " + labelled(documents) + EmptyValues(selector),
		}}}
	}
	return selected, nil
}

func unknownNames(documents []Document, names []string) (problems []Problem) {
	var known []string
	for _, document := range documents {
		known = append(known, document.Node.Metadata.Name)
	}
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		remedy := "there are: " + strings.Join(known, ", ")
		if meant := closest(name, known); meant != "" {
			remedy = fmt.Sprintf("did you mean %s? %s", meant, remedy)
		}
		problems = append(problems, Problem{Field: "--node", What: fmt.Sprintf("there is no node %q", name),
			Remedy: remedy})
	}
	return problems
}

// EmptyValues returns the part of a remedy for a selector that chose no node and has terms such as k= or k==, which
// mean the label k without a value. It returns "" if the selector has no such term.
func EmptyValues(selector string) string {
	text := ""
	for term := range strings.SplitSeq(selector, ",") {
		term = strings.TrimSpace(term)
		if key := strings.TrimRight(term, "=!"); key != "" && strings.HasSuffix(term, "=") {
			text += fmt.Sprintf("; %s means an empty value: write %s=VALUE, or %s for any value", term, key, key)
		}
	}
	return text
}

// requirement is one term of a selector.
type requirement struct {
	key   string
	value string
	exact bool // the value must match too, not only the key
	not   bool
}

func parseSelector(selector string) (requirements []requirement, problems []Problem) {
	if strings.TrimSpace(selector) == "" {
		return nil, nil
	}
	for term := range strings.SplitSeq(selector, ",") {
		r := parseTerm(strings.TrimSpace(term))
		if r.key == "" || strings.ContainsAny(r.key+r.value, "=!() \t") {
			problems = append(problems, Problem{
				Field: "--selector", What: fmt.Sprintf("%q is not understood", term),
				Remedy: "write k=v, k!=v, k or !k, several with commas",
			})
		}
		requirements = append(requirements, r)
	}
	return requirements, problems
}

func parseTerm(term string) requirement {
	if key, value, ok := strings.Cut(term, "!="); ok {
		return requirement{strings.TrimSpace(key), strings.TrimSpace(value), true, true}
	}
	if key, value, ok := strings.Cut(term, "="); ok {
		return requirement{strings.TrimSpace(key), strings.TrimSpace(strings.TrimPrefix(value, "=")), true, false}
	}
	key, not := strings.CutPrefix(term, "!")
	return requirement{key: strings.TrimSpace(key), not: not}
}

// fits reports whether the labels meet all requirements. As in Kubernetes, a node without
// the label k meets k!=v.
func fits(labels map[string]string, requirements []requirement) bool {
	for _, r := range requirements {
		value, has := labels[r.key]
		if met := has && (!r.exact || value == r.value); met == r.not {
			return false
		}
	}
	return true
}

// labelled returns a list of nodes with their labels.
func labelled(documents []Document) string {
	var nodes []string
	for _, document := range documents {
		var labels []string
		for key, value := range document.Node.Metadata.Labels {
			labels = append(labels, key+"="+value)
		}
		slices.Sort(labels)
		if len(labels) == 0 {
			labels = []string{"no labels"}
		}
		nodes = append(nodes, fmt.Sprintf("%s (%s)", document.Node.Metadata.Name, strings.Join(labels, ",")))
	}
	return strings.Join(nodes, ", ")
}
