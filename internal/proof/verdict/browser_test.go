package verdict_test

import (
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/proof/verdict"
	"github.com/swdt-dev/swdt/internal/testing/browsertest"
)

// TestInABrowser opens the page of a report with hostile texts, on a wide screen and on a phone, in
// light and dark. No text becomes markup, and nothing is fetched.
func TestInABrowser(t *testing.T) {
	r := report(t)
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{1400, 400} {
		page := browsertest.Open(t, filepath.Join(r.Folder, verdict.PageName), width, 900)
		if n := browsertest.Eval[int](page, `document.querySelectorAll("script, img, iframe, link").length`); n != 0 {
			t.Errorf("%d elements of the page come from texts of specs", n)
		}
		const specs = `document.querySelectorAll(".spec, details > summary > .verdict").length`
		if n := browsertest.Eval[int](page, specs); n != 5 {
			t.Errorf("%d specs are shown, want 5", n)
		}
		if wide := browsertest.Eval[bool](page,
			`document.documentElement.scrollWidth > document.documentElement.clientWidth`); wide {
			t.Errorf("the page is wider than %d pixels", width)
		}
		page.LooksRight()
	}
}
