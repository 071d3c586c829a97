package suite

import (
	"fmt"
	"regexp"
)

// Description is the name of the suite, which precedes the name of each spec when Ginkgo compares it
// with a filter.
const Description = "Kubernetes e2e suite"

// Selection are the filters of specs. The zero Selection is e2e.test's own default: all specs without
// [Flaky] and without [Feature:…]. With any filter, e2e.test leaves out nothing by itself.
type Selection struct {
	// Focus and Skip are regular expressions for names of specs. A spec is selected if one of Focus
	// matches it (or if there are none), and none of Skip.
	Focus []string `json:"focus"`
	Skip  []string `json:"skip"`
	// LabelFilter is a filter of Ginkgo, such as "sig-windows && !Serial".
	LabelFilter string `json:"labelFilter"`
}

// Only returns the Selection of exactly these specs.
func Only(specs ...Spec) Selection {
	s := Selection{}
	for _, spec := range specs {
		s.Focus = append(s.Focus, "^"+regexp.QuoteMeta(Description+" "+spec.Name)+"$")
	}
	return s
}

// Empty reports whether the selection has no filter.
func (s Selection) Empty() bool { return len(s.Focus)+len(s.Skip) == 0 && s.LabelFilter == "" }

// Check returns an error if a filter of the selection is no regular expression. Ginkgo itself checks
// the label filter.
func (s Selection) Check() error {
	for _, text := range append(append([]string{}, s.Focus...), s.Skip...) {
		if _, err := regexp.Compile(text); err != nil {
			return fmt.Errorf("the filter %q is no regular expression: %w; write a [ as \\[", text, err)
		}
	}
	return nil
}

// MatchesText reports whether Focus and Skip select the spec. It does not look at LabelFilter. A filter
// that is no regular expression matches nothing.
func (s Selection) MatchesText(spec Spec) bool {
	return (len(s.Focus) == 0 || matches(s.Focus, spec)) && !matches(s.Skip, spec)
}

func matches(filters []string, spec Spec) bool {
	for _, text := range filters {
		if filter, err := regexp.Compile(text); err == nil && filter.MatchString(Description+" "+spec.Name) {
			return true
		}
	}
	return false
}

func (s Selection) flags() (flags []string) {
	for _, text := range s.Focus {
		flags = append(flags, "--ginkgo.focus="+text)
	}
	for _, text := range s.Skip {
		flags = append(flags, "--ginkgo.skip="+text)
	}
	if s.LabelFilter != "" {
		flags = append(flags, "--ginkgo.label-filter="+s.LabelFilter)
	}
	return flags
}
