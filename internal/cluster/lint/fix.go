package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

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
	if rule.fix == nil || s.byHand || o.file == "" {
		return repair{}
	}
	at := s.at
	if len(rule.fix.at) > 0 {
		at = rule.fix.at
	}
	return repair{o, at.child(rule.fix.below...), rule.fix.value}
}

// Fixed is a finding that Fix has removed from a text.
type Fixed struct {
	Rule   string `json:"rule"`
	File   string `json:"file"`
	Line   int    `json:"line"` // before the change
	Object string `json:"object"`
	Field  string `json:"field"`
	Change string `json:"change"` // such as "removed" or "set to true"
}

const (
	// mostRounds bounds the rounds of Fix. A fix can lead to findings: pods with spec.os.name are checked as Windows pods.
	mostRounds = 5
	// mostParsed bounds the bytes that Fix reads again, since a hostile text can need a fix for each line.
	mostParsed = 16 << 20
)

// Fix changes the texts so that the findings with a fix that are as severe as least or worse are gone; a later Check
// reports them as fixed. It changes no other byte. Findings
// that are ignored stay, and so do those in a form of YAML that it does not change, such as values behind aliases.
func (r *Reader) Fix(o Options, least finding.Severity) {
	f := fixing{reader: r, least: least, left: mostParsed, failed: map[failedFix]bool{}}
	for range mostRounds {
		before := len(f.fixed)
		for _, found := range f.inOneDocument(r.read().check(o).found) {
			f.document(found)
		}
		if len(f.fixed) == before {
			break
		}
	}
	r.fixed, r.unfixable = f.fixed, f.failed
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
	report.Fixed, report.DryRun = append([]Fixed{}, r.fixed...), true
	report.Findings = slices.DeleteFunc(report.Findings, func(f Finding) bool {
		return f.fixedBy(least) && !r.unfixable[nameOf(f)]
	})
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

// failedFix names a fix that the form of the text does not allow.
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
		case err != nil:
			f.failed[name] = true
		case next == content: // another fix has removed it, or the value around it
		default:
			content = next
			f.fixed = append(f.fixed, Fixed{one.Rule, one.File, one.Line, one.Object, one.repair.at.String(), one.repair.change()})
		}
	}
	if t.before == nil && content != string(t.content[in.begin:in.end]) {
		t.before = t.content
	}
	t.content = slices.Concat(t.content[:in.begin], []byte(content), t.content[in.end:])
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
