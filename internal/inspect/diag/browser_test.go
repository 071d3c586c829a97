package diag

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/swdt-dev/swdt/internal/testing/browsertest"
)

// TestThePageInABrowser checks the page in a browser: the summary, a table and its filter,
// the logs' search; on a wide screen and on a phone, in light and dark.
func TestThePageInABrowser(t *testing.T) {
	root, m := gathered(t)
	file := filepath.Join(root, pageName)
	if err := writePage(file, root, m); err != nil {
		t.Fatal(err)
	}
	page := browsertest.Open(t, file, 1200, 900)
	text := func(selector string) string {
		return browsertest.Eval[string](page, `[...document.querySelectorAll("`+selector+
			`")].map(e => e.textContent).join("|")`)
	}
	for selector, want := range map[string]string{
		"#nodes .failed": "failed", "#nodes td": "connection refused",
		"#findings tr:nth-child(2) td:first-child": "error", "#files td": "the node has no hnsdiag",
		"#about": "profile network",
	} {
		if got := text(selector); !strings.Contains(got, want) {
			t.Errorf("%s is %q, without %q", selector, got, want)
		}
	}
	set := func(id, value, event string) {
		browsertest.Eval[bool](page, `(() => { const e = document.getElementById("`+id+`"); e.value = "`+value+
			`"; e.dispatchEvent(new Event("`+event+`")); return true })()`)
	}
	set("node", "1", "change")
	for _, name := range []string{"machine", "cluster-node"} { // these have no header
		set("table", name, "change")
		if got := text("#rows td"); !strings.HasPrefix(got, "hostname|win-2|") {
			t.Errorf("%s is %q", name, got)
		}
	}
	set("table", "services", "change")
	if got := browsertest.Eval[int](page, `document.querySelectorAll("#rows tr").length`); got != 42 {
		t.Errorf("%d rows of services", got)
	}
	set("filter", "program files", "input")
	row := `containerd|running|4711|"C:\Program Files\containerd\bin\containerd.exe" --run-service`
	if got := text("#rows td"); got != row {
		t.Errorf("filtered they are %q", got)
	}
	set("search", "FAILED ON", "input")
	if got := text("#hits mark"); got != "failed on|failed on" {
		t.Errorf("the search finds %q", got)
	}
	// No word of a table that fits a line is broken; on a phone the table scrolls.
	browsertest.Do(page, chromedp.EmulateViewport(400, 844, chromedp.EmulateMobile))
	broken := browsertest.Eval[string](page, `(() => {
		const ruler = document.createElement("span");
		ruler.style.cssText = "position:absolute;visibility:hidden;white-space:pre";
		document.body.append(ruler);
		const broken = [];
		for (const td of document.querySelectorAll("td")) {
			const style = getComputedStyle(td);
			const room = td.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
			ruler.style.font = style.font;
			for (const word of td.textContent.split(/\s+/)) {
				ruler.textContent = word;
				if (word.length <= 36 && ruler.offsetWidth > room + 1) broken.push(word);
			}
		}
		ruler.remove(); return broken.join(" ") })()`)
	if broken != "" {
		t.Errorf("broken in two: %s", broken)
	}
	if keep := os.Getenv("SWDT_KEEP_PAGE"); keep != "" {
		content, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(keep, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	page.LooksRight()
}
