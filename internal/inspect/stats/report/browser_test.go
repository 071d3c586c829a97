package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/swdt-dev/swdt/internal/testing/browsertest"
)

// TestInABrowser checks the page in a browser: it renders, and the pointer on a chart
// shows its numbers, on a wide screen and on a phone, in light and dark.
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
	middle := browsertest.Eval[[]float64](page,
		`(() => { const s = document.querySelector("figure svg"); s.scrollIntoView({block: "center"});
		const b = s.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2] })()`)
	browsertest.Do(page, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, middle[0], middle[1]))
	tip := browsertest.Eval[string](page,
		`[...document.querySelectorAll(".tip")].filter(t => getComputedStyle(t).visibility === "visible")`+
			`.map(t => t.textContent).join("|")`)
	switch {
	case !strings.Contains(tip, "reported 0."):
		t.Errorf("tip lacks %q:\n%s", "reported 0.", tip)
	case !strings.Contains(tip, "computed 0."):
		t.Errorf("tip lacks %q:\n%s", "computed 0.", tip)
	case strings.Contains(tip, "|"):
		t.Errorf("tip contains %q:\n%s; pointing at a chart shows %q", "|", tip, tip)
	}
	page.LooksRight()
}

func TestThePageIsTheSameEveryTime(t *testing.T) {
	if first, second := story(t), story(t); !bytes.Equal(first, second) {
		t.Error("two pages of the same recording differ")
	}
}

// The only busy one of 200 containers is the first in the list and in the charts, and the
// labels are readable on a small screen.
func TestManyContainersOnASmallScreen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, crowd(t), 0o644); err != nil {
		t.Fatal(err)
	}
	page := browsertest.Open(t, file, 400, 800)
	browsertest.Do(page, chromedp.EmulateViewport(400, 800, chromedp.EmulateMobile))
	first := browsertest.Eval[string](page,
		`document.querySelector("#list tbody tr").textContent + "|" + `+
			`document.querySelector("#charts figure figcaption").textContent`)
	if strings.Count(first, "default/pod-167/busy") != 2 {
		t.Errorf("the first ones are %q", first)
	}
	if small := browsertest.Eval[float64](page,
		`Math.min(...[...document.querySelectorAll("#charts figure:first-child svg text")]`+
			`.map(e => e.getBoundingClientRect().height))`); small < 10 {
		t.Errorf("the smallest label is %v pixels high", small)
	}
	if cut := browsertest.Eval[string](page,
		`[...document.querySelectorAll("#charts svg")].flatMap(s => [...s.querySelectorAll("text")].filter(e => {
		const a = e.getBoundingClientRect(), b = s.getBoundingClientRect();
		return a.left < b.left - 1 || a.right > b.right + 1 || a.bottom > b.bottom + 3;
	}).map(e => e.textContent)).join(" ")`); cut != "" {
		t.Errorf("labels beyond the picture: %s", cut)
	}
	count := func() string {
		return browsertest.Eval[string](page,
			`[...document.querySelectorAll("#list tbody tr, #charts figure")].filter(e => !e.hidden).length + " " `+
				`+ document.getElementById("shown").textContent`)
	}
	if got := count(); got != "260 200 of 200" {
		t.Errorf("shown %q, want all in the list and 60 charts", got)
	}
	set := func(id, value, event string) {
		browsertest.Eval[bool](page, `(() => { const e = document.getElementById("`+id+`"); e.value = "`+value+
			`"; e.dispatchEvent(new Event("`+event+`")); return true })()`)
	}
	set("filter", "POD-167/", "input")
	if got := count(); got != "2 1 of 200" {
		t.Errorf("filtered %q, want the busy one's row and chart", got)
	}
	set("filter", "", "input")
	set("order", "name", "change")
	if got := browsertest.Eval[string](page,
		`document.querySelector("#list tbody td").textContent`); got != "default/pod-1/idle" {
		t.Errorf("by name the first one is %q", got)
	}
	if wide := browsertest.Eval[float64](page, `document.documentElement.scrollWidth`); wide > 400 {
		t.Errorf("it is %v wide", wide)
	}
}
