package netpol_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/proof/netpol"
	"github.com/swdt-dev/swdt/internal/testing/browsertest"
)

// TestInABrowser opens the page of a report with hostile texts, on a wide screen and on a phone, in light
// and dark. No text becomes markup, and nothing is fetched.
func TestInABrowser(t *testing.T) {
	const hostile = `<script>alert(1)</script><img src="https://example.com/x">`
	report := netpol.Report{Result: netpol.Differs, Cluster: "https://api", Begin: time.Unix(0, 0), Seconds: 7,
		Pods: []netpol.PodReport{{Name: "x/a", Node: "lin-1", System: "linux", Address: "10.244.0.2"},
			{Name: "x/b" + hostile, Node: "win-1", System: "windows", Address: "10.244.1.2"}},
		Ports: []string{"TCP/8080"}, Unsupported: []string{"SCTP on windows"}, Cases: []netpol.CaseReport{
			{Name: netpol.Before, Result: netpol.AsMeant, Cells: 2,
				Tables: []netpol.Table{{Ports: []string{"TCP/8080"}, Rows: []string{"-.", ".-"}}}},
			{Name: "deny" + hostile, Policies: []string{"x/deny"}, Result: netpol.Differs, Cells: 2, Denied: 2, Wrong: 1,
				Tables: []netpol.Table{{Ports: []string{"TCP/8080"}, Rows: []string{"-P", "x-"}}},
				Differences: []netpol.Difference{{From: "x/a", To: "x/b", Port: "TCP/8080", Expected: "denied",
					Outcome: "connected", Seen: "10.0.0.1", Text: hostile}}}}}
	var text bytes.Buffer
	if err := report.WritePage(&text); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "netpol.html")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{1400, 400} {
		page := browsertest.Open(t, file, width, 900)
		if n := browsertest.Eval[int](page, `document.querySelectorAll("script, img, iframe, link").length`); n != 0 {
			t.Errorf("%d elements of the page come from texts of pods", n)
		}
		if n := browsertest.Eval[int](page, `document.querySelectorAll("td.wrong").length`); n != 1 {
			t.Errorf("%d cells are marked as wrong, want 1", n)
		}
		if wide := browsertest.Eval[bool](page,
			`document.documentElement.scrollWidth > document.documentElement.clientWidth`); wide {
			t.Errorf("the page is wider than %d pixels", width)
		}
		page.LooksRight()
	}
}
