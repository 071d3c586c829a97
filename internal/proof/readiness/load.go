package readiness

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
)

//go:embed cases.yaml
var casesFile []byte

// Cases returns all cases, those of a category together. The tests show that the embedded file is
// valid, so an error is a mistake in this build of swdt.
func Cases() ([]Case, error) { return parse(casesFile) }

// parse reads cases and completes them. The error has all problems.
func parse(text []byte) ([]Case, error) {
	var file struct {
		Cases []Case `json:"cases"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("read the readiness cases: %w", err)
	}
	var problems []error
	seen := map[string]bool{}
	for i := range file.Cases {
		c := &file.Cases[i]
		c.complete()
		if err := c.check(); err != nil {
			problems = append(problems, err)
		}
		if seen[c.ID] {
			problems = append(problems, fmt.Errorf("case %s: another case has this id", c.ID))
		}
		seen[c.ID] = true
	}
	slices.SortStableFunc(file.Cases, func(a, b Case) int { return rank(a) - rank(b) })
	return file.Cases, errors.Join(problems...)
}

func rank(c Case) int { return slices.Index(Categories(), c.Category) }

// complete fills in defaults.
func (c *Case) complete() {
	for i := range c.Specs {
		if c.Specs[i].Count == 0 {
			c.Specs[i].Count = 1
		}
	}
}

// check returns the first problem of a case by itself.
func (c *Case) check() error {
	id := regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	switch {
	case !id.MatchString(c.ID):
		return fmt.Errorf("case %q: id: write small letters, digits and -", c.ID)
	case rank(*c) < 0:
		return fmt.Errorf("case %s: category %q: use one of %q", c.ID, c.Category, Categories())
	case c.Proves == "":
		return fmt.Errorf("case %s: proves is empty", c.ID)
	case (len(c.Specs) == 0) == (c.Probe == ""):
		return fmt.Errorf("case %s: write either specs or a probe", c.ID)
	case c.Probe != "" && c.Why == "":
		return fmt.Errorf("case %s: why is empty: write why specs do not prove the case", c.ID)
	case c.Classic.ID == "" && len(c.Classic.Focus) > 0:
		return fmt.Errorf("case %s: classic has no id", c.ID)
	}
	for _, need := range c.Needs {
		if !slices.Contains(Needs(), need) {
			return fmt.Errorf("case %s: needs %q: use some of %q", c.ID, need, Needs())
		}
	}
	for _, selection := range c.Specs {
		if len(selection.Labels) == 0 || len(selection.Texts) == 0 || selection.Count < 0 {
			return fmt.Errorf("case %s: a selection needs labels, texts and a count above 0", c.ID)
		}
	}
	return nil
}
