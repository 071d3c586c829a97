package result_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui/order"
	"github.com/swdt-dev/swdt/internal/ui/result"
)

type sortedOwner struct {
	Owner string   `json:"owner"`
	Cores *float64 `json:"cores"`
	Size  string   `json:"size"`
}

type sortedNode struct {
	Name   string        `json:"name"`
	Owners []sortedOwner `json:"owners"`
}

type sortedReport struct {
	Nodes []sortedNode   `json:"nodes"`
	Raw   map[string]any `json:"raw"`
}

func sortedExample() sortedReport {
	few, many := 0.00001, 12345678.5
	return sortedReport{Nodes: []sortedNode{
		{"win-10", []sortedOwner{{"a", &many, "1Gi"}, {"b", nil, "2Mi"}, {"c", &few, "10Ki"}}},
		{"win-2", []sortedOwner{{"d", nil, ""}}},
	}}
}

func TestSorterSortsTheListsThatHaveThePath(t *testing.T) {
	for _, test := range []struct{ by, want string }{
		{"{.cores}", "win-10 c a b win-2 d"},
		{"-{.cores}", "win-10 a c b win-2 d"},
		{".size", "win-10 c b a win-2 d"},
		{"{.name}", "win-2 d win-10 a b c"},
		{"{.owners[0].owner}", "win-10 a b c win-2 d"},
		{"-{.owners[0].owner}", "win-2 d win-10 a b c"},
	} {
		before := sortedExample()
		sorter, err := result.NewSorter(order.Parse(test.by), before)
		if err != nil {
			t.Fatal(err)
		}
		template, err := templateOf(`{{range .nodes}}{{.name}} {{range .owners}}{{.owner}} {{end}}{{end}}`)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := (result.Writer{Format: result.GoTemplate, Template: template, Sorter: sorter}).Write(&out, before); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out.String()); got != test.want {
			t.Errorf("--sort-by %s: %s, want %s", test.by, got, test.want)
		}
		if before.Nodes[0].Name != "win-10" || before.Nodes[0].Owners[0].Owner != "a" {
			t.Errorf("--sort-by %s has changed the document itself: %v", test.by, before)
		}
	}
}

func templateOf(text string) (result.Template, error) {
	_, template, _, err := result.ParseTemplate(result.GoTemplate + "=" + text)
	return template, err
}

func TestSorterRefusesAPathThatNoRowHas(t *testing.T) {
	for path, refused := range map[string]bool{
		"{.cores}": false, "{.name}": false, "{..name}": false, "{.disk}": true, "{.nodes}": true, "{.cores": true,
	} {
		_, err := result.NewSorter(order.Parse(path), struct {
			Nodes []sortedNode `json:"nodes"`
		}{})
		if (err != nil) != refused {
			t.Errorf("%s: %v, want refused %v", path, err, refused)
		}
	}
}
