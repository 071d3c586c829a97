package architecture_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/architecture"
)

const (
	mostRooms = 31 // folders side by side: 27 of internal/, and api, cmd, bench and e2e
	// 130, and what the rooms vm, join/bake, day0, proof (with selftest) and rollout (with its commands), and nodes
	// without SSH need; two for wait.Program, which day0 and cli run other programs with; one for the scratch
	// folders of builds; and five for the decoder of text in format, which config, cluster, setup, vm and tests read files with
	mostArrows = 193
)

func TestImportsFollowTheRules(t *testing.T) {
	imports, err := architecture.Imports("../..")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, floor := range architecture.Floors() {
		for _, room := range floor {
			known[room.Name] = true
		}
	}
	used := map[string]bool{}
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		room := architecture.RoomOf(from)
		used[room] = true
		if !known[room] {
			t.Errorf("%s stands in no known room: add %q to Floors in internal/architecture, or put the package into "+
				"a room that exists", from, room)
			continue
		}
		for _, imported := range slices.Sorted(maps.Keys(imports[from])) {
			if reason := architecture.Forbidden(from, imported); reason != "" {
				t.Errorf("%s imports %s: %s", from, imported, reason)
			}
		}
	}
	for room := range known {
		if !used[room] {
			t.Errorf("Floors names %q, which holds no package", room)
		}
	}
}

func TestRoomsAndArrowsStayFew(t *testing.T) {
	imports, err := architecture.Imports("../..")
	if err != nil {
		t.Fatal(err)
	}
	rooms := architecture.Arrows(imports)
	arrows := 0
	for _, all := range rooms {
		arrows += len(all)
	}
	t.Logf("%d rooms, %d arrows between them", len(rooms), arrows)
	if len(rooms) > mostRooms || arrows > mostArrows {
		t.Errorf("%d rooms and %d arrows; at most %d and %d keep the map readable", len(rooms), arrows, mostRooms,
			mostArrows)
	}
}

func TestOnePackageNameMeansOneThing(t *testing.T) {
	imports, err := architecture.Imports("../..")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(imports)) {
		if !strings.HasPrefix(path, "internal/") {
			continue // programs
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if other := seen[name]; other != "" {
			t.Errorf("two packages are called %s: %s and %s", name, other, path)
		}
		seen[name] = path
	}
}

func TestForbidden(t *testing.T) {
	for _, test := range []struct {
		from, imported string
		allowed        bool
	}{
		{"internal/push", "internal/node", true},
		{"internal/push", "internal/push/watch", true},
		{"internal/node", "internal/push", false},
		{"internal/push", "internal/agent/swap", false},
		{"internal/push", "internal/platform", true},
		{"internal/push", "internal/platform/windows", false},
		{"internal/push", "internal/platform/simulated", false},
		{"internal/agent", "internal/localfile", false},
		{"internal/agent", "internal/wire/layout", true},
		{"internal/agent", "internal/platform/simulated", false},
		{"internal/wire/rpcerror", "internal/platform", false},
		{"internal/format/logline", "internal/ui", false},
		{"internal/cli", "internal/sandbox", true},
		{"internal/cli", "internal/sandbox/wine", false},
		{"internal/inspect/doctor", "internal/testing/nodetest", false},
		{"internal/sandbox", "internal/platform/simulated", true},
		{"internal/testing/nodetest", "internal/cli", false},
		{"cmd/swdt", "internal/cli", true},
		{"cmd/swdt-agent", "internal/agent", true},
		{"cmd/swdt-agent", "internal/ui", false},
		{"internal/agent", "api/v1alpha1", false},
		{"internal/docgen", "internal/cli", true},
	} {
		if reason := architecture.Forbidden(test.from, test.imported); (reason == "") != test.allowed {
			t.Errorf("%s imports %s: allowed %t expected, but Forbidden returned %q", test.from, test.imported,
				test.allowed, reason)
		}
	}
}
