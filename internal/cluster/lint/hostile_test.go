package lint_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/lint"
)

// hostiles are files that would make a reader without bounds slow, or large.
func hostiles() map[string]string {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i, c := 1, "0"; i < 10; i++ {
		next := string(rune('0' + i))
		bomb += "a" + next + ": &a" + next + " [" + strings.TrimSuffix(strings.Repeat("*a"+c+",", 10), ",") + "]\n"
		c = next
	}
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  os: {name: windows}\n"
	return map[string]string{
		"a bomb of aliases":       pod + bomb,
		"an alias to itself":      pod + "  containers: &c [*c]\n",
		"deep lists":              strings.Repeat("[", 200_000),
		"deep mappings":           strings.Repeat("{a: ", 20_000),
		"a List in a List":        strings.Repeat("{kind: List, items: [", 5_000),
		"wide and deep":           strings.Repeat("[", 9_800) + strings.Repeat("1,", 200_000) + "1" + strings.Repeat("]", 9_800),
		"many bad comments":       pod + strings.Repeat("  # swdt-lint:ignore x: y\n  a: 1\n", 20_000),
		"many broken documents":   strings.Repeat("---\na: [\n", 100_000),
		"a huge line":             pod + "  hostPID: true # " + strings.Repeat("x", 3<<20) + "\n",
		"many comments":           pod + strings.Repeat("  # swdt-lint:ignore x: y\n", 50_000) + "  hostPID: true\n",
		"many containers":         pod + "  containers:\n" + strings.Repeat("  - {name: a, securityContext: {privileged: true, runAsUser: 1}}\n", 6_000),
		"many documents":          strings.Repeat("---\napiVersion: v1\nkind: Pod\nspec: {hostPID: true, os: {name: windows}}\n", 3_000),
		"NUL bytes":               pod + "  hostPID: true\n  hostname: \"\\0\\0\"\n",
		"bytes that are no UTF-8": "apiVersion: \xff\xfe\n",
		"numbers that overflow":   pod + "  terminationGracePeriodSeconds: 1e999\n",
	}
}

// Each ends, with few findings, and the report names what was left out.
func TestHostileFilesAreBounded(t *testing.T) {
	const most = 10_000
	for name, text := range hostiles() {
		t.Run(name, func(t *testing.T) {
			var r lint.Reader
			r.File("a.yaml", []byte(text))
			report := r.Check(lint.Options{AssumeWindows: true})
			if len(report.Findings) > most || len(report.Findings)+len(report.Unread) == 0 && report.Objects > 0 {
				t.Errorf("%d findings, %d unread, %d objects", len(report.Findings), len(report.Unread), report.Objects)
			}
			if name == "many containers" && report.More == 0 {
				t.Error("the report does not count what it leaves out")
			}
		})
	}
}

func FuzzLint(f *testing.F) {
	for _, rule := range lint.Rules() {
		f.Add(lint.Manifest(rule.Bad))
	}
	for name, text := range hostiles() {
		if len(text) < 10_000 {
			f.Add(text)
		}
		_ = name
	}
	f.Fuzz(func(t *testing.T, text string) {
		var r lint.Reader
		r.Stream("stdin", []byte(text))
		for _, found := range r.Check(lint.Options{AssumeWindows: true}).Findings {
			if found.What == "" || found.Remedy == "" || found.Source == "" || found.Line < 1 {
				t.Errorf("%+v", found)
			}
		}
	})
}
