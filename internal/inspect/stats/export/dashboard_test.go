package export_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/export"
)

// dashboard is the part of Grafana's schema that our dashboard uses.
type dashboard struct {
	Title         string
	UID           string
	SchemaVersion int
	Templating    struct{ List []variable }
	Panels        []panel
}

type variable struct {
	Name, Type, Query string
	Datasource        datasource
}

type datasource struct{ Type, UID string }

type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource datasource
	GridPos    struct{ H, W, X, Y int }
	Targets    []struct {
		RefID      string
		Expr       string
		Datasource datasource
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/metrics/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Every panel has its own place and a query.
func TestTheDashboardsStructure(t *testing.T) {
	d := readDashboard(t)
	switch {
	case d.Title == "":
		t.Error("d.Title is empty")
	case d.UID == "":
		t.Error("d.UID is empty")
	case d.SchemaVersion < 36:
		t.Errorf("d.SchemaVersion = %v, want at least 36", d.SchemaVersion)
	case len(d.Panels) == 0:
		t.Errorf("len(d.Panels) = 0; %q %q %d, %d panels", d.Title, d.UID, d.SchemaVersion, len(d.Panels))
	}
	const columns = 24
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s: the id %d is there twice, or 0", p.Title, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		switch {
		case p.Title == "":
			t.Error("p.Title is empty")
		case p.Type == "":
			t.Error("p.Type is empty")
		case g.H < 1:
			t.Errorf("g.H = %v, want at least 1", g.H)
		case g.W < 1:
			t.Errorf("g.W = %v, want at least 1", g.W)
		case g.X < 0:
			t.Errorf("g.X = %v, want at least 0", g.X)
		case g.X+g.W > columns:
			t.Errorf("g.X+g.W = %v, want at most %v; %q: %+v", g.X+g.W, columns, p.Title, p)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s asks nothing", p.Title)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			switch {
			case target.Expr == "":
				t.Error("target.Expr is empty")
			case target.RefID == "":
				t.Error("target.RefID is empty")
			case refs[target.RefID]:
				t.Errorf("refs[target.RefID] is wrong; %s: %+v", p.Title, target)
			case target.Datasource != (datasource{"prometheus", "${datasource}"}):
				t.Errorf("target.Datasource = %v, want %v; %s: %+v", target.Datasource,
					(datasource{"prometheus", "${datasource}"}), p.Title, target)
			}
			refs[target.RefID] = true
		}
	}
}

// The dashboard queries only metrics that are exposed, with labels that they have, and uses
// only variables that it defines.
func TestTheDashboardAsksForWhatThereIs(t *testing.T) {
	d := readDashboard(t)
	exposed := labelsOf(t)
	variables := map[string]bool{}
	var queries []string
	for _, v := range d.Templating.List {
		variables[v.Name] = true
		if v.Type == "query" {
			queries = append(queries, v.Query)
		}
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
			if err := closed(target.Expr); err != "" {
				t.Errorf("%s: %s", target.Expr, err)
			}
		}
	}
	metric := regexp.MustCompile(`\b(swdt_[a-z_]+)(?:\{([^}]*)\})?`)
	variable := regexp.MustCompile(`\$\{?([a-z]+)\}?`)
	asked := 0
	for _, query := range queries {
		for _, found := range metric.FindAllStringSubmatch(query, -1) {
			asked++
			labels, ok := exposed[found[1]]
			if !ok {
				t.Errorf("%s: there is no metric %s", query, found[1])
			}
			for matcher := range strings.SplitSeq(found[2], ",") {
				name, _, _ := strings.Cut(matcher, "=")
				if name != "" && !slices.Contains(labels, strings.TrimRight(name, "!")) {
					t.Errorf("%s: %s has no label %s, it has %v", query, found[1], name, labels)
				}
			}
		}
		for _, found := range variable.FindAllStringSubmatch(query, -1) {
			if !variables[found[1]] {
				t.Errorf("%s: there is no variable %s", query, found[1])
			}
		}
	}
	if asked < len(d.Panels) {
		t.Errorf("only %d metrics found in %d panels", asked, len(d.Panels))
	}
}

// labelsOf returns the labels of every exposed metric, by the metric's name.
func labelsOf(t *testing.T) map[string][]string {
	t.Helper()
	exporter, follower := export.New(), stats.NewFollower(stats.DefaultTolerance)
	for i := range 30 {
		r := reading(i, "1", stats.Value(5e8))
		exporter.Add(r, follower.Add(r))
	}
	zero := reading(30, "1", stats.Value(0))
	exporter.Add(zero, follower.Add(zero))
	families, err := exporter.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string][]string{}
	for _, family := range families {
		var labels []string
		for _, pair := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, pair.GetName())
		}
		series[family.GetName()] = labels
		if family.GetMetric()[0].GetHistogram() != nil {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				series[family.GetName()+suffix] = append([]string{"le"}, labels...)
			}
			delete(series, family.GetName())
		}
	}
	return series
}

// closed returns the error in an expression's brackets and quotes, or "" if there is none.
func closed(expr string) string {
	var open []rune
	quoted := false
	pairs := map[rune]rune{')': '(', '}': '{', ']': '['}
	for _, c := range expr {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("({[", c):
			open = append(open, c)
		case pairs[c] != 0:
			if len(open) == 0 || open[len(open)-1] != pairs[c] {
				return "a bracket closes that is not open"
			}
			open = open[:len(open)-1]
		}
	}
	if quoted || len(open) > 0 {
		return "something is left open"
	}
	return ""
}
