package readiness

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// suiteName precedes the name of each spec when Ginkgo compares it with a focus.
const suiteName = "Kubernetes e2e suite "

// LinuxOnly is the label of specs that cannot pass on Windows. Some specs have it in their names only.
const LinuxOnly = "LinuxOnly"

// Spec is a test of e2e.test.
type Spec struct {
	Name   string   `json:"name"`
	Labels []string `json:"labels"`
}

// Has reports whether the spec has a label, or has it in brackets in its name.
func (s Spec) Has(label string) bool {
	return slices.Contains(s.Labels, label) || strings.Contains(s.Name, "["+label+"]")
}

// Selection selects specs by their labels and names. A selected spec has all of Labels, and its name
// contains all of Texts in this order.
type Selection struct {
	Labels []string `json:"labels"`
	Texts  []string `json:"texts"`
	// Ends reports whether the last text must be the end of the name.
	Ends bool `json:"ends"`
	// Count is the number of specs that the selection must match.
	Count int `json:"count"`
}

// Matches reports whether the selection selects the spec.
func (s Selection) Matches(spec Spec) bool {
	for _, label := range s.Labels {
		if !slices.Contains(spec.Labels, label) {
			return false
		}
	}
	rest := spec.Name
	for _, text := range s.Texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			return false
		}
		rest = after
	}
	return rest == "" || !s.Ends
}

// String returns the selection in words.
func (s Selection) String() string {
	return fmt.Sprintf("labels %s, texts %q", strings.Join(s.Labels, " and "), s.Texts)
}

// MismatchError reports that a selection of a case matches more or fewer specs than it should, so that
// the case would prove something else.
type MismatchError struct {
	Case      string
	Selection Selection
	Specs     []string // the names of the specs that match
}

func (e *MismatchError) Error() string {
	text := fmt.Sprintf("case %s: the selection by %s matches %d specs, and should match %d", e.Case, e.Selection,
		len(e.Specs), e.Selection.Count)
	if len(e.Specs) > 0 {
		text += ": " + strings.Join(e.Specs[:min(len(e.Specs), 5)], "; ")
	}
	return text
}

// LinuxOnlyError reports that a case selects a spec that cannot pass on Windows.
type LinuxOnlyError struct{ Case, Spec string }

func (e *LinuxOnlyError) Error() string {
	return fmt.Sprintf("case %s: the spec %q is for Linux only", e.Case, e.Spec)
}

// Select returns the specs of a case, in the order of the list. A case with a probe has none. The error
// is a *MismatchError or a *LinuxOnlyError.
func (c Case) Select(all []Spec) (selected []Spec, err error) {
	for _, selection := range c.Specs {
		var names []string
		for _, spec := range all {
			if !selection.Matches(spec) {
				continue
			}
			if spec.Has(LinuxOnly) {
				return nil, &LinuxOnlyError{Case: c.ID, Spec: spec.Name}
			}
			names = append(names, spec.Name)
			selected = append(selected, spec)
		}
		if len(names) != selection.Count {
			return nil, &MismatchError{Case: c.ID, Selection: selection, Specs: names}
		}
	}
	return selected, nil
}

// Selected returns the specs that the focus of the classic test case selects, as e2e.test would. It
// returns an error if the focus is no regular expression.
func (c Classic) Selected(all []Spec) (selected []Spec, err error) {
	if len(c.Focus) == 0 {
		return nil, nil
	}
	focus, err := regexp.Compile(strings.Join(c.Focus, "|"))
	if err != nil {
		return nil, fmt.Errorf("focus of %s: %w", c.ID, err)
	}
	for _, spec := range all {
		if focus.MatchString(suiteName + spec.Name) {
			selected = append(selected, spec)
		}
	}
	return selected, nil
}
