package objectfix

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/swdt-dev/swdt/internal/ui"
)

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

// Field is a changed field of an object: a text, or a list of texts.
type Field struct {
	Name   string `json:"name"`
	Before any    `json:"before"`
	After  any    `json:"after"`
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
	changed := difflib.UnifiedDiff{A: linesOf(f.Before), B: linesOf(f.After), Context: 2}
	text, err := difflib.GetUnifiedDiffString(changed)
	if err != nil { // it writes into memory, so it does not fail
		return []string{err.Error()}
	}
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(line, "\r\n"))
	}
	return lines
}

// linesOf returns the lines of a text, or the items of a list.
func linesOf(value any) (lines []string) {
	items, ok := value.([]any)
	if !ok {
		items = nil
		for line := range strings.Lines(fmt.Sprint(value)) {
			items = append(items, strings.TrimRight(line, "\n"))
		}
	}
	for _, item := range items {
		lines = append(lines, fmt.Sprint(item)+"\n")
	}
	return lines
}
