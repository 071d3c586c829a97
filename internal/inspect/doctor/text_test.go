package doctor_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// report returns the report of a node, with one skipped rule.
func report(node string, findings ...finding.Fault) doctor.Report {
	return doctor.Report{
		Node: node, Windows: "ltsc2022", Rules: []string{"disk-space", "joined"},
		Skipped: []doctor.Skipped{{Rule: "mtu", Why: "no cluster to ask: set --kubeconfig"}}, Findings: findings,
	}
}

func reportText(t *testing.T, wide bool, reports ...doctor.Report) string {
	t.Helper()
	var out bytes.Buffer
	err := doctor.WriteText(ui.NewPage(&out, false), reports, doctor.TextOptions{
		Wide:     wide,
		Remedies: func(nodes []string, text string) string { return text + " -n " + strings.Join(nodes, ",") },
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func notJoined(evidence string) finding.Fault {
	return finding.Fault{Rule: "joined", Finding: finding.Finding{Severity: finding.Info,
		What: "kubelet was never joined", Evidence: evidence, Remedy: "join"}}
}

func fullDisk() finding.Fault {
	return finding.Fault{Rule: "disk-space", Finding: finding.Finding{Severity: finding.Error,
		What: "the disk is full", Evidence: "0 B free"}}
}

func TestSeveralNodesShareAFinding(t *testing.T) {
	got := reportText(t, false,
		report("n1", notJoined("no file")), report("n2", notJoined("an empty file"), fullDisk()),
		report("n10", notJoined("no file")))
	const want = `n1, n10 (ltsc2022): 1 note in 2 rules, 1 skipped
n2 (ltsc2022): 1 error, 1 note in 2 rules, 1 skipped
✗ disk-space  the disk is full
              on n2
              seen: 0 B free
· joined      kubelet was never joined
              on all 3 nodes
              seen: n1, n10: no file
              seen: n2: an empty file
              → join -n n1,n2,n10
skipped: mtu: no cluster to ask: set --kubeconfig
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Findings with another remedy or severity are not merged.
func TestFindingsThatDifferAreNotJoined(t *testing.T) {
	other, worse := notJoined("no file"), notJoined("no file")
	other.Remedy, worse.Severity = "setup", finding.Warning
	got := reportText(t, false, report("n1", notJoined("no file")), report("n2", other), report("n3", worse))
	for _, want := range []string{"on n1\n", "on n2\n", "on n3\n", "→ join -n n1\n", "→ setup -n n2\n",
		"→ join -n n3\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Index(got, "on n3") > strings.Index(got, "on n1") {
		t.Errorf("the worst is not the first\n%s", got)
	}
}

func TestOneNodeIsNotNamedWithEachFinding(t *testing.T) {
	const want = `n1 (ltsc2022): 1 error in 2 rules, 1 skipped
✗ disk-space  the disk is full
              seen: 0 B free
skipped: mtu: no cluster to ask: set --kubeconfig
`
	if got := reportText(t, false, report("n1", fullDisk())); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Lists of nodes are shortened, except in commands to paste and with -o wide.
func TestManyNodesAreShortened(t *testing.T) {
	var reports []doctor.Report
	for i := range 30 {
		reports = append(reports, report(fmt.Sprintf("n%d", i+1), notJoined(fmt.Sprintf("file %d", i+1))))
	}
	reports = append(reports, report("sound"))
	got := reportText(t, false, reports...)
	for _, want := range []string{
		"n1, n2, n3, n4, n5 and 25 more (ltsc2022): 1 note", "on n1, n2, n3, n4, n5 and 25 more\n",
		"seen: n3: file 3\n",
		"seen: and 27 more; -o wide prints them\n", ",n29,n30\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if lines := strings.Count(got, "\n"); lines != 10 {
		t.Errorf("%d lines:\n%s", lines, got)
	}
	wide := reportText(t, true, reports...)
	if !strings.Contains(wide, "on n1, n2, n3, n4, n5, n6, n7") || !strings.Contains(wide, "seen: n30: file 30\n") {
		t.Errorf("-o wide:\n%s", wide)
	}
}
