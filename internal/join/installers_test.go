package join_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/setup"
)

// docs/installers.md compares each step with the published installers.
func TestEachStepIsComparedWithInstallers(t *testing.T) {
	page, err := os.ReadFile("../../docs/installers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "## The steps of a join")
	ofJoin, rest, _ := strings.Cut(rest, "## The steps of a setup")
	ofSetup, _, _ := strings.Cut(rest, "## ")

	var names []string
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		steps, err := join.Steps(l.Node.Node, l.doc, l.options())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			names = append(names, s.Name())
		}
	})
	compare(t, "join", names, rows(t, ofJoin))

	yes := true
	names = nil
	for _, s := range setup.Steps(nil, v1alpha1.Setup{
		EnableRDP: &yes, ChocoPackages: []string{"vim"}, Features: []string{"Containers"},
		OpenSSH: &v1alpha1.OpenSSH{AuthorizedKeys: []string{"key.pub"}}, Path: []string{`C:\tools`},
		Hosts:       []v1alpha1.HostsEntry{{Address: "10.0.0.1", Names: []string{"cp"}}},
		Environment: map[string]string{"A": "b"}, Firewall: []v1alpha1.FirewallRule{{Name: "web"}},
		Registry: []v1alpha1.RegistryValue{{Key: `HKLM\SOFTWARE\A`, Name: "B", DWord: new(uint32)}}, AutomaticUpdates: &yes,
		Defender: v1alpha1.Defender{ExcludePaths: []string{`C:\a`}},
	}, setup.Options{}) {
		name, _, _ := strings.Cut(s.Name(), " web") // the names of what the node file has are not the step's
		name, _, _ = strings.Cut(name, " vim")
		names = append(names, name)
	}
	compare(t, "setup", names, rows(t, ofSetup))
}

// docs/installers.md also has what published installers do and swdt does not.
func TestTopicsWithoutAStepAreCompared(t *testing.T) {
	page, err := os.ReadFile("../../docs/installers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Topics without a step of swdt")
	for _, topic := range []string{"gMSA", "time service", "TLS versions and ciphers", "GPU", "images on the node",
		"long file names", "page file", "memory reserved for Windows", "Server Core or Desktop Experience", "Windows 11"} {
		_, row, found := strings.Cut(table, "\n| "+topic+" | ")
		row, _, _ = strings.Cut(row, "\n")
		if cells := strings.Split(row, "|"); !found || len(cells) != 3 || strings.TrimSpace(cells[0]) == "" || strings.TrimSpace(cells[1]) == "" {
			t.Errorf("docs/installers.md has no whole row for %s: %q", topic, row)
		}
	}
}

// rows returns the first cells of a table's rows. Each row has an entry for swdt and for the installers.
func rows(t *testing.T, table string) (names []string) {
	t.Helper()
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		name, ok := strings.CutPrefix(strings.TrimSpace(cells[min(1, len(cells)-1)]), "`")
		if !ok {
			continue
		}
		if len(cells) != 6 || strings.TrimSpace(cells[2]) == "" || strings.TrimSpace(cells[3]) == "" {
			t.Errorf("an incomplete row: %s", line)
		}
		names = append(names, strings.TrimSuffix(name, "`"))
	}
	return names
}

func compare(t *testing.T, what string, steps, rows []string) {
	t.Helper()
	slices.Sort(steps)
	slices.Sort(rows)
	if !slices.Equal(steps, rows) {
		t.Errorf("the steps of a %s are %q, and docs/installers.md has rows for %q", what, steps, rows)
	}
}
