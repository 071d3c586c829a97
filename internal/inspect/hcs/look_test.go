package hcs

import (
	"strings"
	"testing"
)

// Earlier pod sandboxes and containers that the runtime still lists do not make a name
// ambiguous.
func TestFindingAComputeSystem(t *testing.T) {
	c := Systems{
		All: []System{{ID: "5b00"}, {ID: "77ff"}, {ID: "77aa"}, {ID: "99cc"}},
		Owners: []Owner{
			{ID: "4a00", Pod: "default/web"}, {ID: "5b00", Pod: "default/web", Running: true},
			{ID: "77ee", Pod: "default/web", Container: "web"},
			{ID: "77ff", Pod: "default/web", Container: "web", Running: true},
			{ID: "88bb", Pod: "default/web", Container: "init"},
		},
	}
	for name, want := range map[string]string{
		"default/web": "5b00", "default/web/web": "77ff", "77f": "77ff", "99": "99cc",
		"77":               `"77" is ambiguous: it may be 77aa, 77ff`, // 77aa has no owner
		"default/web/init": "is no compute system of this node", "77ee": "is no compute system of this node",
		"default/other": "there is no container or compute system",
	} {
		system, err := c.Find(name)
		if err == nil && system.ID != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %s", name, system.ID, err, want)
		}
	}
}
