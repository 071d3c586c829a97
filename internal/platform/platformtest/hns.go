package platformtest

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// These are the objects that a test adds. Both kinds of machine that the suite
// runs on read the objects from files.
const (
	plantedFolder  = `C:\ProgramData\swdt-hns`
	plantedNetwork = `0A1B2C3D-1111-2222-3333-444455556666`
	plantedSystem  = `hosttest-5f1c0d`
)

func (f Fixture) plant(t *testing.T, kind, id, document string) {
	t.Helper()
	need(t, f.Has.PlantedHNS, "networks that a test may make")
	check(t, f.Platform.Files.MakeFolder(plantedFolder+`\`+kind))
	path := plantedFolder + `\` + kind + `\` + id + ".json"
	f.write(t, path, document)
	t.Cleanup(func() {
		if err := f.Platform.Files.Remove(path); err != nil && !errors.Is(err, fault.ErrNotExist) {
			t.Error(err)
		}
	})
}

func testCompute(t *testing.T, fixture func(*testing.T) Fixture) {
	t.Run("NetworkObjects", func(t *testing.T) { testNetworkObjects(t, fixture(t)) })
	t.Run("Systems", func(t *testing.T) { testSystems(t, fixture(t)) })
	t.Run("Remove", func(t *testing.T) { testRemove(t, fixture(t)) })
	t.Run("Terminate", func(t *testing.T) { testTerminate(t, fixture(t)) })
}

func testNetworkObjects(t *testing.T, f Fixture) {
	if objects, err := f.Platform.Compute.NetworkObjects(t.Context(), "sharks"); !errors.Is(err,
		fault.ErrNotSupported) {
		t.Errorf("a kind that there is none of: %s, %v", objects, err)
	}
	for _, kind := range []platform.NetworkKind{platform.HNSNetworks, platform.HNSEndpoints, platform.HNSNamespaces,
		platform.HNSLoadBalancers} {
		document := `{"ID":"` + plantedNetwork + `","Name":"Käfig ` + string(kind) + `"}`
		f.plant(t, string(kind), plantedNetwork, document)
		objects, err := f.Platform.Compute.NetworkObjects(t.Context(), kind)
		check(t, err)
		switch {
		case len(objects) != 1:
			t.Errorf("%s: objects has %d elements, want 1: %v", kind, len(objects), objects)
		case string(objects[0]) != document:
			t.Errorf("%s: objects[0] is %v, want %v", kind, string(objects[0]), document)
		}
	}
}

func testSystems(t *testing.T, f Fixture) {
	f.plant(t, "systems", plantedSystem, `{"Id":"`+plantedSystem+`","SystemType":"Container","State":"Running",`+
		`"Statistics":{"Memory":{"MemoryUsagePrivateWorkingSetBytes":4096}}}`)
	systems, err := f.Platform.Compute.Systems(t.Context())
	check(t, err)
	switch {
	case len(systems) != 1:
		t.Fatalf("systems has %d elements, want 1: %v", len(systems), systems)
	case systems[0].ID != plantedSystem:
		t.Fatalf("systems[0].ID is %v, want %v", systems[0].ID, plantedSystem)
	case systems[0].Failure != "":
		t.Fatalf(`systems[0].Failure is %q, want ""`, systems[0].Failure)
	}
	var summary struct{ SystemType string }
	check(t, json.Unmarshal(systems[0].Summary, &summary))
	var properties struct {
		Statistics struct {
			Memory struct{ MemoryUsagePrivateWorkingSetBytes int }
		}
	}
	check(t, json.Unmarshal(systems[0].Properties, &properties))
	if summary.SystemType != "Container" || properties.Statistics.Memory.MemoryUsagePrivateWorkingSetBytes != 4096 {
		t.Errorf("summary %s, properties %s", systems[0].Summary, systems[0].Properties)
	}
}

func testRemove(t *testing.T, f Fixture) {
	c := f.Platform.Compute
	for _, id := range []string{"00000000-0000-0000-0000-00000000abcd", `..\systems\` + plantedSystem} {
		if err := c.Remove(t.Context(), platform.HNSEndpoints, id); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("remove %s: %v", id, err)
		}
	}
	if err := c.Remove(t.Context(), platform.HNSNamespaces, plantedNetwork); !errors.Is(err, fault.ErrNotSupported) {
		t.Errorf("remove a namespace: %v", err)
	}
	for _, kind := range []platform.NetworkKind{platform.HNSLoadBalancers, platform.HNSEndpoints, platform.HNSNetworks} {
		f.plant(t, string(kind), plantedNetwork, `{"ID":"`+plantedNetwork+`"}`)
		check(t, c.Remove(t.Context(), kind, plantedNetwork))
		objects, err := c.NetworkObjects(t.Context(), kind)
		check(t, err)
		if len(objects) != 0 {
			t.Errorf("%s: still there: %s", kind, objects)
		}
	}
}

func testTerminate(t *testing.T, f Fixture) {
	for _, id := range []string{"no-such-system", `..\networks\` + plantedNetwork} {
		if err := f.Platform.Compute.Terminate(t.Context(), id); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("terminate %s: %v", id, err)
		}
	}
	f.plant(t, "systems", plantedSystem, `{"Id":"`+plantedSystem+`"}`)
	check(t, f.Platform.Compute.Terminate(t.Context(), plantedSystem))
	systems, err := f.Platform.Compute.Systems(t.Context())
	check(t, err)
	if len(systems) != 0 {
		t.Errorf("still there: %+v", systems)
	}
	if err := f.Platform.Compute.Terminate(t.Context(), plantedSystem); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("once more: %v", err)
	}
}
