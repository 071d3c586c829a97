package preflight

import (
	"os"
	"strings"
	"testing"
)

// TestTheGuideHasEveryCheck compares the table of docs/guides/join.md with the checks.
func TestTheGuideHasEveryCheck(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guides/join.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // check to its subject
	for line := range strings.Lines(string(guide)) {
		cells := strings.Split(line, "|")
		if id, ok := strings.CutPrefix(strings.TrimSpace(cells[min(1, len(cells)-1)]), "`"); ok && len(cells) > 5 {
			rows[strings.TrimSuffix(id, "`")] = strings.TrimSpace(cells[2])
		}
	}
	for _, c := range Checks() {
		if rows[c.ID] != c.Looks {
			t.Errorf("the guide says that %s looks at %q, and it looks at %q", c.ID, rows[c.ID], c.Looks)
		}
		delete(rows, c.ID)
	}
	for id := range rows {
		t.Errorf("the guide has a check %s that there is not", id)
	}
}
