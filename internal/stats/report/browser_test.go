package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/swdt-dev/swdt/internal/browsertest"
)

// TestInABrowser looks at the page as a person would: whether it renders, whether
// pointing at a chart shows its numbers, on a wide screen and on a phone, in light
// and dark.
func TestInABrowser(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, story(t), 0o644); err != nil {
		t.Fatal(err)
	}
	page := browsertest.Open(t, file, 1100, 900)
	charts := browsertest.Eval[int](page, `document.querySelectorAll("figure svg .reported").length`)
	faults := browsertest.Eval[int](page, `document.querySelectorAll("figure svg .fault").length`)
	if charts != 2 || faults < 10 {
		t.Errorf("%d charts with %d faults", charts, faults)
	}
	middle := browsertest.Eval[[]float64](page, `(() => { const s = document.querySelector("figure svg"); s.scrollIntoView({block: "center"});
		const b = s.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2] })()`)
	browsertest.Do(page, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, middle[0], middle[1]))
	tip := browsertest.Eval[string](page, `[...document.querySelectorAll(".tip")].filter(t => getComputedStyle(t).visibility === "visible").map(t => t.textContent).join("|")`)
	if !strings.Contains(tip, "reported 0.") || !strings.Contains(tip, "computed 0.") || strings.Contains(tip, "|") {
		t.Errorf("pointing at a chart shows %q", tip)
	}
	page.LooksRight()
}

func TestThePageIsTheSameEveryTime(t *testing.T) {
	if first, second := story(t), story(t); !bytes.Equal(first, second) {
		t.Error("two pages of the same recording differ")
	}
}
