package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/yamledit"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// fix is the change that a rule makes to a manifest: a field is removed, or given a value.
type fix struct {
	at    path // of the object; nothing: the place of the finding
	below path // that place
	value any  // nil: the field is removed
}

// repair is a fix at its place.
type repair struct {
	object *object // nil: there is none
	at     path
	value  any // nil: the field is removed
}

// removal is the fix that removes the field at the place of the finding.
func removal() *fix { return &fix{} }

func repairOf(o *object, rule Rule, s seen) repair {
	if rule.fix == nil || s.byHand || o.file == "" || o.pods != nil && o.pods.system.guessed {
		return repair{}
	}
	at := s.at
	if len(rule.fix.at) > 0 {
		at = rule.fix.at
	}
	at = at.child(rule.fix.below...)
	if slices.ContainsFunc(o.ignores, func(one ignore) bool { return slices.Equal(one.below, at) }) {
		return repair{} // a comment above the field would be above the next one
	}
	return repair{o, at, rule.fix.value}
}

// Fixed is a finding that Fix has removed from a text.
type Fixed struct {
	Rule   string `json:"rule"`
	File   string `json:"file"`
	Line   int    `json:"line"` // before the change
	Object string `json:"object"`
	Field  string `json:"field"`
	Change string `json:"change"` // such as "removed" or "set to true"

	fix failedFix
}

const (
	// mostRounds bounds the rounds of Fix. A fix can lead to findings: pods with spec.os.name are checked as Windows pods.
	mostRounds = 5
	// mostParsed bounds the bytes that Fix reads again, since a hostile text can need a fix for each line.
	mostParsed = 16 << 20
)

// Fix changes the texts so that the findings with a fix that are as severe as least or worse are gone; a later Check
// reports them as fixed. It changes no other byte. Findings that are ignored stay, and so do those in a form of YAML that
// it does not change, such as values behind aliases. A text in which a fix leads to an object that the API server rejects,
// or moves a comment that ignores findings, stays as it was.
func (r *Reader) Fix(o Options, least finding.Severity) {
	f := fixing{reader: r, left: mostParsed, failed: map[failedFix]bool{}}
	f.pass(o, finding.Warning)
	if least == finding.Info {
		f.pass(o, least)
	}
	r.fixed, r.unfixable = f.fixed, f.failed
}

// pass fixes findings until none is left, and puts texts back that became worse.
func (f *fixing) pass(o Options, least finding.Severity) {
	f.least = least
	before, first := slices.Clone(f.reader.texts), len(f.fixed)
	were := f.troubles(o)
	for range mostRounds {
		done := len(f.fixed)
		for _, found := range f.inOneDocument(f.reader.read().check(o).found) {
			f.document(found)
		}
		if len(f.fixed) == done {
			break
		}
	}
	worse := map[string]bool{}
	for name, n := range f.troubles(o) {
		worse[name] = n > were[name]
	}
	for i, t := range f.reader.texts {
		if worse[t.name] {
			f.reader.texts[i] = before[i]
		}
	}
	later := slices.DeleteFunc(slices.Clone(f.fixed[first:]), func(one Fixed) bool {
		if worse[one.File] {
			f.failed[one.fix] = true
		}
		return worse[one.File]
	})
	f.fixed = append(f.fixed[:first], later...)
}

// troubles counts the findings of each text that a fix must not add: what the API server rejects, and what is ignored.
func (f *fixing) troubles(o Options) map[string]int {
	all := map[string]int{}
	for _, one := range f.reader.read().check(o).found {
		if one.Effect == Rejected || one.Ignored != "" {
			all[one.File]++
		}
	}
	return all
}

// Text is a text before and after Fix.
type Text struct {
	File          string
	Before, After []byte
}

// Changed reports whether Fix has changed the text.
func (t Text) Changed() bool { return !bytes.Equal(t.Before, t.After) }

// Texts returns all texts, in the order in which they were read.
func (r *Reader) Texts() (all []Text) {
	for _, t := range r.texts {
		one := Text{t.name, t.content, t.content}
		if t.before != nil {
			one.Before = t.before
		}
		all = append(all, one)
	}
	return all
}

// FixDry changes the texts as Fix does, and returns the report about the texts before, without the findings that are gone.
func (r *Reader) FixDry(o Options, least finding.Severity) Report {
	report := r.Check(o)
	r.Fix(o, least)
	left := map[failedFix]bool{}
	for _, f := range r.Check(o).Findings {
		left[nameOf(f)] = true
	}
	report.Fixed, report.DryRun = append([]Fixed{}, r.fixed...), true
	report.Findings = slices.DeleteFunc(report.Findings, func(f Finding) bool { return f.fixedBy(least) && !left[nameOf(f)] })
	for i, f := range report.Findings {
		report.Findings[i].Fixable = f.Fixable && !r.unfixable[nameOf(f)]
	}
	return report
}

// fixing is one run of Fix.
type fixing struct {
	reader *Reader
	least  finding.Severity
	left   int // bytes that may be parsed
	failed map[failedFix]bool
	fixed  []Fixed
}

// fixedBy reports whether Fix with a severity fixes the finding.
func (f Finding) fixedBy(least finding.Severity) bool {
	return f.Fixable && f.Ignored == "" && f.Severity.AtLeast(least)
}

// nameOf names the fix of a finding.
func nameOf(f Finding) failedFix { return failedFix{f.Rule, f.File, f.Object, f.repair.at.String()} }

// failedFix names a fix, such as one that the form of the text does not allow.
type failedFix struct{ rule, file, object, field string }

// inOneDocument returns the findings to fix, those of a document together. A document further down comes first, so that
// its changes move no other one.
func (f *fixing) inOneDocument(found []Finding) (all [][]Finding) {
	found = slices.DeleteFunc(slices.Clone(found), func(one Finding) bool { return !one.fixedBy(f.least) })
	place := func(f Finding) part { return f.repair.object.in }
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(place(a).text, place(b).text), cmp.Compare(place(b).begin, place(a).begin))
	})
	for _, f := range found {
		if n := len(all); n > 0 && place(all[n-1][0]).text == place(f).text && place(all[n-1][0]).begin == place(f).begin {
			all[n-1] = append(all[n-1], f)
			continue
		}
		all = append(all, []Finding{f})
	}
	return all
}

// document fixes the findings of one document.
func (f *fixing) document(found []Finding) {
	in := found[0].repair.object.in
	t := &f.reader.texts[in.text]
	content := string(t.content[in.begin:in.end])
	for _, one := range found {
		name := nameOf(one)
		if f.failed[name] || f.left < len(content) {
			continue
		}
		f.left -= 2 * len(content)
		next, err := one.repair.apply(content)
		switch {
		case err != nil, next == content, commentLines(next) < commentLines(content):
			f.failed[name] = true // or another fix has removed the field, or the value around it
		default:
			content = next
			f.fixed = append(f.fixed, Fixed{one.Rule, one.File, one.Line, one.Object, one.repair.at.String(), one.repair.change(), name})
		}
	}
	if t.before == nil && content != string(t.content[in.begin:in.end]) {
		t.before = t.content
	}
	t.content = slices.Concat(t.content[:in.begin], []byte(content), t.content[in.end:])
}

// commentLines counts the lines that have a comment alone.
func commentLines(text string) (n int) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "#") {
			n++
		}
	}
	return n
}

func (p repair) change() string {
	if p.value == nil {
		return "removed"
	}
	return fmt.Sprintf("set to %v", p.value)
}

// apply changes the text of the document. A securityContext that has lost all its fields is removed, too.
func (p repair) apply(content string) (string, error) {
	at := append(slices.Clip(p.object.in.path), p.at...)
	switch {
	case p.value != nil:
		return yamledit.Set(content, at, p.value)
	case len(at) > 1 && at[len(at)-2] == "securityContext":
		return yamledit.Unset(content, at)
	}
	return yamledit.Remove(content, at)
}
