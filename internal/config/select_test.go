package config

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

func TestSelect(t *testing.T) {
	var documents []Document
	for _, n := range []v1alpha1.Metadata{
		{Name: "a", Labels: map[string]string{"os": "2019", "gpu": ""}},
		{Name: "b", Labels: map[string]string{"os": "2022"}},
		{Name: "c"},
	} {
		documents = append(documents, Document{Node: v1alpha1.Node{Metadata: n}})
	}
	tests := []struct {
		nodes, selector string
		want            string // names, or the error
	}{
		{"", "", "a b c"},
		{"c a", "", "a c"},
		{"", "os=2022", "b"},
		{"", "os == 2022", "b"},
		{"", "os!=2022", "a c"},
		{"", "os", "a b"},
		{"", "!os", "c"},
		{"", "os,!gpu", "b"},
		{"", "gpu=", "a"},
		{"a c", "!os", "c"},
		{"d", "", `--node: there is no node "d"; there are: a, b, c`},
		{"", "os=2025",
			`--selector: no node has the labels "os=2025"; there are: a (gpu=,os=2019), b (os=2022), c (no labels)`},
		{"", "os in (a)", `--selector: "os in (a)" is not understood; write k=v, k!=v, k or !k, several with commas`},
		{"", "os,", `--selector: "" is not understood; write k=v, k!=v, k or !k, several with commas`},
		{"", "=x", `--selector: "=x" is not understood; write k=v, k!=v, k or !k, several with commas`},
	}
	for _, test := range tests {
		t.Run(test.nodes+"/"+test.selector, func(t *testing.T) {
			selected, err := Select(documents, strings.Fields(test.nodes), test.selector)
			var names []string
			for _, d := range selected {
				names = append(names, d.Node.Metadata.Name)
			}
			got := strings.Join(names, " ")
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"enableRDP", "chocoPackages", "features", "hosts", "path", "env"}
	for unknown, want := range map[string]string{
		"enablerdp": "enableRDP", "enableRPD": "enableRDP", "chocoPackage": "chocoPackages", "feature": "features",
		"pth": "path", "evn": "env", "rdp": "enableRDP", "packages": "chocoPackages",
		"x": "", "ab": "", "something": "", "": "", strings.Repeat("features", 100): "",
	} {
		if got := closest(unknown, known); got != want {
			t.Errorf("closest(%q) = %q, want %q", unknown, got, want)
		}
	}
}
