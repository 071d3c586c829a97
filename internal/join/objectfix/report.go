package objectfix

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Report is the result of `swdt upgrade check --fix`.
type Report struct {
	// Check has the findings before the change.
	Check upgradecheck.Report `json:"check"`
	// Objects has the changes of objects of the cluster.
	Objects []Change `json:"objects"`
	// Fixed has the changes of nodes.
	Fixed push.Report `json:"fixed"`
	// Left are the findings that no change settles.
	Left []upgradecheck.Finding `json:"left"`
}

// Complete adds the changes of the nodes.
func (r *Report) Complete(results []fleet.Result[push.NodeResult]) {
	r.Fixed = push.NewReport(results)
	if r.Left == nil {
		r.Left = []upgradecheck.Finding{}
	}
	if r.Objects == nil {
		r.Objects = []Change{}
	}
}

// LeftHas reports whether a finding of severity s or worse is left.
func (r *Report) LeftHas(s finding.Severity) bool {
	var all []finding.Finding
	for _, f := range r.Left {
		all = append(all, f.Finding)
	}
	return finding.Has(all, s)
}

// WriteText writes the changes, and what is left. The text of the check is written before the question.
func (r *Report) WriteText(p *ui.Page) error {
	if err := WriteText(p, r.Objects); err != nil {
		return err
	}
	if len(r.Fixed.Nodes) > 0 || len(r.Objects) == 0 {
		if err := r.Fixed.WriteText(p); err != nil {
			return err
		}
	}
	for _, f := range r.Left {
		if f.Severity == finding.Info {
			continue
		}
		if _, err := fmt.Fprintf(p, "left: %s: %s; %s\n", f.Places[0], f.What, f.Remedy); err != nil {
			return err
		}
	}
	return nil
}

// The results of a change.
const (
	Planned   = "planned"
	Changed   = "changed"
	Unchanged = "unchanged" // the object no longer has the settings
	Conflict  = "conflict"  // other managers own the fields
	Failed    = "failed"
)

// Change is the change of one object.
type Change struct {
	Object string  `json:"object"` // such as ConfigMap kube-system/kube-proxy
	Result string  `json:"result"`
	Fields []Field `json:"fields"`
	// Owners are the other managers of these fields.
	Owners []Owner `json:"owners"`
	// Sources are the tools that have made the object and would undo the change.
	Sources []string `json:"sources"`
	// Effect says when the change takes effect.
	Effect  string `json:"effect"`
	Message string `json:"message"` // why the object was not changed

	err error
}

// Field is a changed field of an object: the lines of a text, or the items of a list.
type Field struct {
	Name   string   `json:"name"`
	Before []string `json:"before"`
	After  []string `json:"after"`
}

// Owner is a manager of a field.
type Owner struct {
	Field     string `json:"field"`
	Manager   string `json:"manager"`
	Operation string `json:"operation"` // Update, or Apply for a server-side apply
}

// Failure returns the errors of the objects that were not changed; nil: there are none.
func Failure(changes []Change) error {
	var all []error
	for _, c := range changes {
		if c.Result == Failed || c.Result == Conflict {
			var changed *UnverifiedError
			if errors.As(c.err, &changed) {
				all = append(all, c.err)
				continue
			}
			all = append(all, fmt.Errorf("%s was not changed: %w", c.Object, c.err))
		}
	}
	return errors.Join(all...)
}

// WriteText writes the difference of each object, the managers of its fields, and its sources.
func WriteText(p *ui.Page, changes []Change) error {
	for _, c := range changes {
		if _, err := fmt.Fprintf(p, "%s: %s\n", c.Object, c.Result); err != nil {
			return err
		}
		for _, line := range c.lines() {
			if _, err := fmt.Fprintf(p, "  %s\n", line); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c Change) lines() (lines []string) {
	for _, f := range c.Fields {
		lines = append(lines, f.Name)
		lines = append(lines, f.difference()...)
	}
	for _, o := range c.Owners {
		verb := "owned by"
		if c.Result == Changed || c.Result == Planned {
			verb = "taken from"
		}
		lines = append(lines, fmt.Sprintf("%s: %s %s (%s)", o.Field, verb, o.Manager, o.Operation))
	}
	for _, s := range c.Sources {
		lines = append(lines, "! "+s)
	}
	if c.Message != "" {
		lines = append(lines, strings.Split(c.Message, "\n")...)
	} else if c.Effect != "" && len(c.Fields) > 0 {
		lines = append(lines, c.Effect)
	}
	return lines
}

// difference returns the lines that change, with - and + before them and two lines around them.
func (f Field) difference() (lines []string) {
	changed := difflib.UnifiedDiff{A: ended(f.Before), B: ended(f.After), Context: 2}
	text, err := difflib.GetUnifiedDiffString(changed)
	if err != nil { // it writes into memory, so it does not fail
		return []string{err.Error()}
	}
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(line, "\r\n"))
	}
	return lines
}

// ended returns lines with line ends.
func ended(lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, strings.TrimSuffix(line, "\r")+"\n")
	}
	return all
}

// linesOf returns the lines of a text, or of the items of a list, as shown.
func linesOf(value any, shown func(string) string) []string {
	items, ok := value.([]any)
	if !ok {
		items = []any{value}
	}
	lines := []string{}
	for _, item := range items {
		for line := range strings.Lines(shown(fmt.Sprint(item))) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}
