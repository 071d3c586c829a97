package lint

import (
	"fmt"
	"iter"
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
		Means:  "it ignores nothing. So does a comment that an empty line divides from the field below it.",
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

// mostNotes bounds the comments of an object that are read, and its duplicate keys that are reported.
const mostNotes = 500

// readNotes reads the comments and the annotation of an object that ignore findings, and finds its duplicate keys. known
// are the rules.
func (o *object) readNotes(known map[string]bool) {
	o.knownRules = known
	w := notes{object: o, left: mostNotes}
	w.comments(o.node.HeadComment)
	w.feet(o.node.FootComment)
	w.below(o.node)
	if w.left < 0 {
		o.badIgnores = append(o.badIgnores, badIgnore{what: fmt.Sprintf("the object has more than %d comments that ignore findings: the others were not read", mostNotes)})
	}
	text, at := o.texts(path{"metadata", "annotations"})[ignoreAnnotation], path{"metadata", "annotations", ignoreAnnotation}
	if text == "" {
		return
	}
	for _, one := range o.entries(text) {
		o.addIgnore(one, nil, at)
	}
}

// entries returns the entries of an annotation. A semicolon ends one only before the names of rules and a colon, since
// reasons have semicolons too.
func (o *object) entries(text string) (all []string) {
	parts := strings.Split(text, ";")
	for i, part := range parts {
		if i == 0 || len(all) < mostNotes && o.beginsEntry(part) {
			all = append(all, part)
			continue
		}
		all[len(all)-1] += ";" + part
	}
	return all
}

// beginsEntry reports whether a text begins with names of rules and a colon. A name with a hyphen may be a rule that does
// not exist.
func (o *object) beginsEntry(text string) bool {
	names, _, ok := strings.Cut(text, ":")
	if !ok {
		return false
	}
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if !o.knownRules[name] && (strings.ContainsAny(name, " \t\n") || !strings.Contains(name, "-")) {
			return false
		}
	}
	return true
}

// notes walks through the values of an object.
type notes struct {
	object *object
	at     []step // of the present value
	left   int    // comments
}

// step is a part of a path: a key, or the index of an item if it has none.
type step struct {
	key   *yaml.Node
	index int
}

// path returns the path of the present value. The walk makes none otherwise, since values can be many and deep.
func (w *notes) path() path {
	var p path
	for _, s := range w.at {
		if s.key != nil {
			p = append(p, s.key.Value)
		} else {
			p = append(p, fmt.Sprintf("[%d]", s.index))
		}
	}
	return p
}

// comments reads the comments about the present value.
func (w *notes) comments(all ...string) {
	for text := range w.ignores(all) {
		at := w.path()
		below := at
		if len(at) == 1 && (at[0] == "apiVersion" || at[0] == "kind") {
			below = nil
		}
		w.object.addIgnore(text, below, at)
	}
}

// feet reads the comments below the present value, which are about no field.
func (w *notes) feet(all ...string) {
	for range w.ignores(all) {
		w.object.badIgnores = append(w.object.badIgnores, badIgnore{w.path(), "no field is directly below the comment, so nothing is ignored: remove the empty line"})
	}
}

// ignores returns the texts of comments that ignore findings.
func (w *notes) ignores(comments []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, comment := range comments {
			for line := range strings.Lines(comment) {
				_, text, found := strings.Cut(line, "# "+ignoreComment)
				if !found {
					continue
				}
				if w.left--; w.left < 0 || !yield(text) {
					return
				}
			}
		}
	}
}

// below walks through the values in a value.
func (w *notes) below(n *yaml.Node) {
	w.at = append(w.at, step{})
	switch n.Kind {
	case yaml.MappingNode:
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			w.at[len(w.at)-1].key = key
			if seen[key.Value] && len(w.object.duplicates) < mostNotes {
				w.object.duplicates = append(w.object.duplicates, w.path())
			}
			seen[key.Value] = true
			w.comments(key.HeadComment, key.LineComment, value.LineComment)
			if value.Kind != yaml.SequenceNode || value.Style&yaml.FlowStyle != 0 {
				w.comments(value.HeadComment)
			}
			w.feet(key.FootComment, value.FootComment)
			w.below(value)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			w.at[len(w.at)-1].index = i
			w.comments(item.HeadComment, item.LineComment)
			w.feet(item.FootComment)
			w.below(item)
		}
	}
	w.at = w.at[:len(w.at)-1]
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
