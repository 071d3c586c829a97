package cli

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/hcs"
)

// What the runtime still knows of a container's life before is in nobody's way.
func TestFindingAComputeSystem(t *testing.T) {
	c := computeSystems{
		systems: []hcs.System{{ID: "5b00"}, {ID: "77ff"}, {ID: "77aa"}, {ID: "99cc"}},
		owners: []hcs.Owner{
			{ID: "4a00", Pod: "default/web"}, {ID: "5b00", Pod: "default/web", Running: true},
			{ID: "77ee", Pod: "default/web", Container: "web"}, {ID: "77ff", Pod: "default/web", Container: "web", Running: true},
			{ID: "88bb", Pod: "default/web", Container: "init"},
		},
	}
	for name, want := range map[string]string{
		"default/web": "5b00", "default/web/web": "77ff", "77f": "77ff", "99": "99cc",
		"77":               `"77" may be any of 77aa, 77ff`, // one of them is nobody's
		"default/web/init": "is no compute system of this node", "77ee": "is no compute system of this node",
		"default/other": "there is no container or compute system",
	} {
		system, err := c.find(name)
		if err == nil && system.ID != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %s", name, system.ID, err, want)
		}
	}
}
