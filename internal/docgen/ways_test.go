package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheTableOfWays compares the table of commands in the guide about nodes without SSH with the commands that
// tests run through the cluster.
func TestTheTableOfWays(t *testing.T) {
	ran := func(path, command string) map[string]bool {
		found := map[string]bool{}
		for _, match := range regexp.MustCompile(command).FindAllStringSubmatch(read(t, filepath.Join(root, path)), -1) {
			found[match[1]] = true
		}
		return found
	}
	simulated := ran("internal/cli/testdata/script/viaways.txtar", `(?m)^exits \d+ ([a-z]+)\b.* -c via\.yaml`)
	wine := ran("e2e/via_test.go", `(?:\{|(?:ok|swdt)\(t, )"([a-z]+)"`)
	_, table, ok := strings.Cut(read(t, filepath.Join(root, "docs/guides/without-ssh.md")), "| command |")
	if !ok {
		t.Fatal("the guide has no table of commands")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	yesNo := map[bool]string{true: "yes", false: "no"}
	var want []string
	rows := strings.Split(table, "\n")[2:]
	for _, row := range rows {
		command := strings.Trim(strings.Split(row, "|")[1], " `")
		want = append(want, "| `"+command+"` | "+yesNo[simulated[command]]+" | "+yesNo[wine[command]]+" |")
		delete(simulated, command)
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("the table of commands (-tests +guide):\n%s", diff)
	}
	if len(simulated) > 0 {
		t.Errorf("the table lacks %v", simulated)
	}
}
