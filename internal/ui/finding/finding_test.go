package finding_test

import (
	"bytes"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func TestWrite(t *testing.T) {
	var out bytes.Buffer
	err := finding.Write(ui.NewPage(&out, false), "win-1", "ltsc2022", "1 error", []finding.Entry{
		{By: "rule", Finding: finding.Finding{Severity: finding.Error, What: "it is broken", Remedy: "mend it"},
			On: "n1, n2", Seen: []string{"pieces", "n2: shards"}, Notes: []string{"affected: all"}},
		{By: "another", Finding: finding.Finding{Severity: finding.Warning, What: "it will break"}},
		{By: "third", Finding: finding.Finding{Severity: finding.Info, What: "it is there"}},
	})
	const want = `win-1 (ltsc2022): 1 error
✗ rule     it is broken
           on n1, n2
           seen: pieces
           seen: n2: shards
           affected: all
           → mend it
! another  it will break
· third    it is there
`
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
}

func TestSeveritiesHaveColours(t *testing.T) {
	var out bytes.Buffer
	err := finding.Write(ui.NewPage(&out, true), "win-1", "", "1 error", []finding.Entry{
		{By: "rule", Finding: finding.Finding{Severity: finding.Error, What: "it is broken \x1b[31m"}},
		{By: "another", Finding: finding.Finding{Severity: finding.Warning, What: "it will break"}},
		{By: "third", Finding: finding.Finding{Severity: finding.Info, What: "it is there"}},
	})
	const want = "win-1: 1 error\n" +
		"\x1b[31m✗ rule\x1b[0m     it is broken \\x1b[31m\n" +
		"\x1b[33m! another\x1b[0m  it will break\n" +
		"· third    it is there\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\n%q\nwant\n%q", err, out.String(), want)
	}
}

func TestCounts(t *testing.T) {
	for want, counts := range map[string][3]int{"": {}, "1 error": {1}, "2 errors, 1 warning": {2, 1},
		"3 warnings": {0, 3}, "1 note": {0, 0, 1}, "1 error, 9 notes": {1, 0, 9}} {
		var all []finding.Problem
		for i, s := range finding.Severities() {
			for range counts[i] {
				all = append(all, finding.Problem{Finding: finding.Finding{Severity: s}})
			}
		}
		if got := finding.Counts(all); got != want {
			t.Errorf("%v: %q, want %q", counts, got, want)
		}
	}
}

func TestSeverities(t *testing.T) {
	switch {
	case !finding.Error.AtLeast(finding.Warning):
		t.Errorf("finding.Error.AtLeast(finding.Warning) is wrong; the order of severities is another")
	case finding.Info.AtLeast(finding.Warning):
		t.Errorf("finding.Info.AtLeast(finding.Warning) is wrong; the order of severities is another")
	case !finding.Info.AtLeast(finding.Info):
		t.Errorf("finding.Info.AtLeast(finding.Info) is wrong; the order of severities is another")
	}
}
