package upgradecheck_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// Files of others never end swdt, and each finding has a place and a remedy.
func FuzzFile(f *testing.F) {
	table, err := kubesettings.Load()
	if err != nil {
		f.Fatal(err)
	}
	target, err := upgradecheck.ParseTarget(table, "1.38", "2.4", "ltsc2025")
	if err != nil {
		f.Fatal(err)
	}
	for _, test := range reports() {
		for name, text := range test.files {
			f.Add(name, text)
		}
	}
	f.Add("a.yaml", "a: &a [*a]\nb: {<<: *a, containers: *a}\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		r := upgradecheck.NewReader(table)
		r.File(name, []byte(text))
		for _, found := range upgradecheck.Check(table, target, r.Facts) {
			if len(found.Places) == 0 || found.Remedy == "" || found.What == "" || found.Source == "" {
				t.Errorf("%+v", found)
			}
		}
	})
}
