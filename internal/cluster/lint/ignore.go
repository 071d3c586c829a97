package lint

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// The forms in which the author of a manifest ignores findings. Both name rules and a reason.
const (
	ignoreComment    = "swdt-lint:ignore"     // # swdt-lint:ignore RULE,RULE: REASON
	ignoreAnnotation = "swdt.dev/lint-ignore" // RULE,RULE: REASON; RULE: REASON
)

const ruleIgnore = "ignore"

func ignoreRules() []Rule {
	return []Rule{{
		ID: ruleIgnore, Severity: finding.Warning, Effect: Ignored,
		Title:  "whatever ignores a finding names a rule and a reason",
		Means:  "it ignores nothing.",
		Remedy: "write # " + ignoreComment + " RULE: REASON above the field, or the annotation " + ignoreAnnotation, Source: "https://github.com/swdt-dev/swdt/blob/main/docs/guides/lint.md",
		object: badIgnores,
		Bad:    "# swdt-lint:ignore sec-hostnetwork\nhostNetwork: true",
		Good:   "# swdt-lint:ignore sec-hostnetwork: a webhook makes it a HostProcess pod\nhostNetwork: true",
	}}
}

// ignore is a part of an object in which findings of some rules are ignored.
type ignore struct {
	below  path // nothing: the whole object
	rules  []string
	reason string
}

// badIgnore is a comment or an annotation that ignores nothing.
type badIgnore struct {
	at   path
	what string
}

// readIgnores reads the comments and the annotation of an object. known are the rules.
func (o *object) readIgnores(known map[string]bool) {
	o.knownRules = known
	o.ignoresBelow(o.node, nil, o.node.HeadComment)
	text, at := o.texts(path{"metadata", "annotations"})[ignoreAnnotation], path{"metadata", "annotations", ignoreAnnotation}
	if text == "" {
		return
	}
	for one := range strings.SplitSeq(text, ";") {
		o.addIgnore(one, nil, at)
	}
}

// ignoresBelow reads the comments on a value, and on all values below.
func (o *object) ignoresBelow(n *yaml.Node, at path, comments ...string) {
	for _, comment := range comments {
		for line := range strings.Lines(comment) {
			_, text, found := strings.Cut(line, "# "+ignoreComment)
			if !found {
				continue
			}
			below := at
			if len(at) == 1 && (at[0] == "apiVersion" || at[0] == "kind") {
				below = nil
			}
			o.addIgnore(text, below, at)
		}
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			below := []string{key.HeadComment, key.LineComment, value.LineComment}
			if value.Kind != yaml.SequenceNode || value.Style&yaml.FlowStyle != 0 {
				below = append(below, value.HeadComment)
			}
			o.ignoresBelow(value, at.child(key.Value), below...)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			o.ignoresBelow(item, at.index(i), item.HeadComment, item.LineComment)
		}
	}
}

// addIgnore reads "RULE,RULE: REASON".
func (o *object) addIgnore(text string, below, at path) {
	names, reason, _ := strings.Cut(text, ":")
	one := ignore{below: below, reason: strings.TrimSpace(reason)}
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if !o.knownRules[name] {
			o.badIgnores = append(o.badIgnores, badIgnore{at, fmt.Sprintf("there is no rule %q, so nothing is ignored", shortened(name))})
			return
		}
		one.rules = append(one.rules, name)
	}
	if one.reason == "" {
		o.badIgnores = append(o.badIgnores, badIgnore{at, "the reason is missing, so nothing is ignored"})
		return
	}
	o.ignores = append(o.ignores, one)
}

// ignored returns the reason why a finding is ignored; "": it is not.
func (o *object) ignored(rule string, at path) string {
	for _, one := range o.ignores {
		if slices.Contains(one.rules, rule) && len(at) >= len(one.below) && slices.Equal(at[:len(one.below)], one.below) {
			return one.reason
		}
	}
	return ""
}

func badIgnores(o *object, _ *manifests, found report) {
	for _, bad := range o.badIgnores {
		found(seen{at: bad.at, what: bad.what})
	}
}
