package lint_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/lint"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// checked returns the report about one file.
func checked(t *testing.T, text string) lint.Report {
	t.Helper()
	var r lint.Reader
	r.File("a.yaml", []byte(text))
	report := r.Check(lint.Options{})
	for _, u := range report.Unread {
		t.Errorf("not read: %+v\n%s", u, text)
	}
	return report
}

// Each rule finds its bad example, at a line and a column of it. No rule finds an error or a warning in a good one, and
// the rule itself finds nothing.
func TestExamples(t *testing.T) {
	for _, rule := range lint.Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			bad, found := lint.Manifest(rule.Bad), false
			for _, f := range checked(t, bad).Findings {
				found = found || f.Rule == rule.ID
				if f.Line < 1 || f.Line > strings.Count(bad, "\n") || f.Column < 1 || f.What == "" || f.Remedy == "" || f.Source == "" {
					t.Errorf("%+v", f)
				}
			}
			if !found {
				t.Errorf("nothing found in\n%s", bad)
			}
			good := lint.Manifest(rule.Good)
			for _, f := range checked(t, good).Findings {
				if f.Ignored == "" && (f.Rule == rule.ID || f.Severity != finding.Info) {
					t.Errorf("%+v in\n%s", f, good)
				}
			}
		})
	}
}

func TestRulesAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range lint.Rules() {
		if seen[r.ID] || r.Title == "" || r.Means == "" || r.Remedy == "" || r.Effect == "" || r.Severity == "" || r.Bad == "" ||
			r.Good == "" || !strings.HasPrefix(r.Source, "https://") || strings.HasSuffix(r.Title, ".") || !strings.HasSuffix(r.Means, ".") {
			t.Errorf("%+v", r.ID)
		}
		seen[r.ID] = true
	}
}
