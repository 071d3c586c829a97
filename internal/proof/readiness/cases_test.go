package readiness_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/proof/readiness"
	"github.com/swdt-dev/swdt/internal/proof/readiness/speclist"
)

// recorded returns the recorded spec lists. `make speclists` records them.
func recorded(t *testing.T) []speclist.List {
	t.Helper()
	var lists []speclist.List
	for _, version := range []string{"v1.36.3", "v1.35.4"} {
		list, err := speclist.ReadFile(filepath.Join("testdata", version+speclist.Extension))
		if err != nil {
			t.Fatal(err)
		}
		if list.Version != version || len(list.Specs) < 6000 {
			t.Fatalf("the list of %s is one of %s with %d specs", version, list.Version, len(list.Specs))
		}
		lists = append(lists, list)
	}
	return lists
}

func cases(t *testing.T) []readiness.Case {
	t.Helper()
	all, err := readiness.Cases()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryCaseSelectsItsSpecs(t *testing.T) {
	for _, list := range recorded(t) {
		t.Run(list.Version, func(t *testing.T) {
			user := map[string]string{} // the case of each selected spec
			for _, c := range cases(t) {
				specs, err := c.Select(list.Specs)
				if err != nil {
					t.Error(err)
				}
				for _, s := range specs {
					if other := user[s.Name]; other != "" {
						t.Errorf("the cases %s and %s select the same spec %q", other, c.ID, s.Name)
					}
					user[s.Name] = c.ID
				}
			}
			for _, s := range list.Specs {
				if slices.Contains(s.Labels, "sig-windows") && user[s.Name] == "" {
					t.Errorf("no case selects %q", s.Name)
				}
			}
		})
	}
}

// The cases record what the specification of 2024 selects, and its faults. These are facts too.
func TestClassicTestCasesSelectWhatTheirFaultsSay(t *testing.T) {
	for _, list := range recorded(t) {
		t.Run(list.Version, func(t *testing.T) {
			for _, c := range cases(t) {
				specs, err := c.Classic.Selected(list.Specs)
				if err != nil || len(specs) != c.Classic.Selects {
					t.Errorf("%s selects %d specs, error %v; recorded are %d", c.Classic.ID, len(specs), err, c.Classic.Selects)
				}
			}
		})
	}
}

func TestTheListIsWhole(t *testing.T) {
	all := cases(t)
	var classic, probes []string
	for _, c := range all {
		if c.Classic.ID != "" {
			classic = append(classic, c.Classic.ID)
		}
		if c.Probe != "" {
			probes = append(probes, c.Probe)
		}
	}
	slices.Sort(classic)
	want := []string{
		"Core.Concurrent#1",
		"Core.Network#1", "Core.Network#10", "Core.Network#2", "Core.Network#3", "Core.Network#4", "Core.Network#5",
		"Core.Network#6", "Core.Network#7", "Core.Network#8", "Core.Network#9",
		"Core.Scheduling#1", "Core.Scheduling#2",
		"Core.Storage#1", "Core.Storage#2", "Core.Storage#3", "Core.Storage#4",
		"Extend.ActiveDirectory#1", "Extend.ActiveDirectory#2", "Extend.Network#1", "Extend.Network#2",
		"Extend.NetworkPolicy#1", "Extend.NetworkPolicy#2",
	}
	if diff := cmp.Diff(want, classic); diff != "" {
		t.Errorf("classic test cases (-want +got):\n%s", diff)
	}
	if len(all) < 40 || len(probes) == 0 {
		t.Errorf("%d cases, %d probes", len(all), len(probes))
	}
}

// A list in which something has changed makes the tests above fail.
func TestAWrongSelectionIsFound(t *testing.T) {
	specs := []readiness.Spec{
		{Name: "[sig-windows] Density create 10 pods", Labels: []string{"sig-windows"}},
		{Name: "[sig-network] Services should work [LinuxOnly]", Labels: []string{"sig-network"}},
		{Name: "[sig-network] Services should last", Labels: []string{"sig-network", "LinuxOnly"}},
	}
	selecting := func(label string, texts ...string) readiness.Case {
		return readiness.Case{ID: "one", Specs: []readiness.Selection{{Labels: []string{label}, Texts: texts, Count: 1}}}
	}
	if got, err := selecting("sig-windows", "Density", "10 pods").Select(specs); err != nil || len(got) != 1 {
		t.Errorf("a right selection: %v, %v", got, err)
	}
	ending := selecting("sig-windows", "10 pods")
	ending.Specs[0].Ends = true
	if _, err := ending.Select(specs); err != nil {
		t.Error(err)
	}
	ending.Specs[0].Texts = []string{"10"}
	for name, c := range map[string]readiness.Case{
		"not the end":   ending,
		"no text":       selecting("sig-windows", "Density", "20 pods"),
		"no label":      selecting("sig-node", "Density"),
		"another order": selecting("sig-windows", "10 pods", "Density"),
	} {
		var mismatch *readiness.MismatchError
		if _, err := c.Select(specs); !errors.As(err, &mismatch) || len(mismatch.Specs) != 0 {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	for _, text := range []string{"should work", "should last"} {
		var linux *readiness.LinuxOnlyError
		if _, err := selecting("sig-network", text).Select(specs); !errors.As(err, &linux) {
			t.Errorf("%s: the error is %v", text, err)
		}
	}
	twice := append(specs, specs[0])
	var mismatch *readiness.MismatchError
	_, err := selecting("sig-windows", "Density").Select(twice)
	if !errors.As(err, &mismatch) || len(mismatch.Specs) != 2 {
		t.Errorf("two specs instead of one: the error is %v", err)
	}
}

func TestChoice(t *testing.T) {
	all := cases(t)
	for _, test := range []struct {
		name   string
		choice readiness.Choice
		want   func(readiness.Case) bool
	}{
		{"all", readiness.Choice{}, func(readiness.Case) bool { return true }},
		{"a category", readiness.Choice{Categories: []string{"storage"}}, func(c readiness.Case) bool {
			return c.Category == "storage"
		}},
		{"without needs and a category", readiness.Choice{Skip: []string{"internet", "network"}},
			func(c readiness.Case) bool { return c.Category != "network" && !slices.Contains(c.Needs, "internet") }},
		{"classic", readiness.Choice{Classic: true}, func(c readiness.Case) bool { return c.Classic.ID != "" }},
		{"one", readiness.Choice{IDs: []string{"probe-dns"}}, func(c readiness.Case) bool { return c.ID == "probe-dns" }},
	} {
		var want []readiness.Case
		for _, c := range all {
			if test.want(c) {
				want = append(want, c)
			}
		}
		got, err := test.choice.Choose(all)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: error %v (-want +got):\n%s", test.name, err, diff)
		}
	}
	for _, wrong := range []readiness.Choice{
		{Categories: []string{"networks"}}, {IDs: []string{"dns"}}, {Skip: []string{"the-internet"}},
	} {
		var unknown *readiness.UnknownError
		if _, err := wrong.Choose(all); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "use ") {
			t.Errorf("%+v: the error is %v", wrong, err)
		}
	}
	var nothing *readiness.NothingError
	none := readiness.Choice{Categories: []string{"storage"}, Skip: []string{"storage"}}
	if _, err := none.Choose(all); !errors.As(err, &nothing) {
		t.Errorf("no case left: the error is %v", err)
	}
}
