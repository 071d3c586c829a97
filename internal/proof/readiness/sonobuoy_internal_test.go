package readiness

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/joshdk/go-junit"
)

// Sonobuoy takes a plugin without a failed test as passed. A run that proved nothing, or was not made, must not pass.
func TestSonobuoyGetsEveryResult(t *testing.T) {
	for name, c := range map[string]struct {
		cases []CaseResult
		want  map[string]junit.Status
	}{
		"one of each": {[]CaseResult{
			{ID: "a", Category: Storage, Result: Proved, Proves: "It stores"},
			{ID: "b", Category: Network, Result: NotPossible, Message: "no internet"},
			{ID: "c", Category: Network, Result: Failed, Message: "no answer"},
			{ID: "d", Category: Policy, Result: NotRun, Message: "no e2e.test"},
		}, map[string]junit.Status{"a": "passed", "b": "skipped", "c": "failed", "d": "error", "swdt-readiness": "error"}},
		"proved": {[]CaseResult{{ID: "a", Category: Storage, Result: Proved}, {ID: "b", Category: Network, Result: NotPossible}},
			map[string]junit.Status{"a": "passed", "b": "skipped"}},
		"nothing possible": {[]CaseResult{{ID: "b", Category: Network, Result: NotPossible}},
			map[string]junit.Status{"b": "skipped", "swdt-readiness": "error"}},
		"nothing run": {nil, map[string]junit.Status{"swdt-readiness": "error"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Report{Cases: c.cases}
			r.ended(0)
			folder := filepath.Join(t.TempDir(), "results")
			if err := r.WriteSonobuoy(folder); err != nil {
				t.Fatal(err)
			}
			done, err := os.ReadFile(filepath.Join(folder, "done"))
			if err != nil {
				t.Fatal(err)
			}
			suites, err := junit.IngestFile(string(done))
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]junit.Status{}
			for _, suite := range suites {
				for _, test := range suite.Tests {
					got[test.Name] = test.Status
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
