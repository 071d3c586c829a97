package combination_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/join/combination"
	"github.com/swdt-dev/swdt/internal/join/switches"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

const client = "Windows 11 Pro"

// patched is a node with some values of the registry, by name.
func patched(build, product string, values map[string]string, images ...string) combination.Patched {
	return combination.Patched{Build: build, Product: product, Images: images,
		Switches: func(key, name string) (string, bool) {
			if key != switches.Policy && key != switches.HNS {
				return "", false
			}
			value, ok := values[name]
			return value, ok
		}}
}

func unreadable(build string) combination.Patched {
	return combination.Patched{Build: build, Product: server, NoSwitches: "access is denied", NoImages: "no answer"}
}

type values = map[string]string

// patchCase has nodes that have the fault of a row, that have it not, and of which it is unknown.
type patchCase struct{ has, not, unknown []combination.Patched }

func patchCases() map[string]patchCase {
	type nodes = []combination.Patched
	one := func(build string) combination.Patched { return patched(build, server, nil) }
	with := func(build, name, value string) combination.Patched {
		return patched(build, server, values{name: value})
	}
	return map[string]patchCase{
		"vfp-lock": {nodes{with("20348.3453", "1114842764", "1")},
			nodes{with("20348.3452", "1114842764", "1"), with("20348.3452", "1114842764", "0")},
			nodes{one("20348.3453"), unreadable("20348.5499"), with("20348.3453", "1114842764", "7")}},
		"december-2025": {nodes{with("20348.4529", "140377743", "1")},
			nodes{with("20348.4528", "140377743", "1")}, nodes{one("20348.4529"), unreadable("20348.4529")}},
		"december-2025-23h2": {nodes{with("25398.2207", "66715279", "1")}, nodes{one("20348.1")},
			nodes{one("25398.2207")}},
		"bugcheck-76": {nodes{with("25398.2207", "2112481934", "0")}, nodes{one("20348.1")},
			nodes{one("25398.2207")}},
		"bluescreen-2022": {nodes{patched("20348.2461", server, nil, "10.0.20348.2340")},
			nodes{patched("20348.2461", server, nil, "10.0.20348.2402"), patched("20348.2462", server, nil, "10.0.20348.2340")},
			nodes{unreadable("20348.1726")}},
		"layer-2025": {nodes{patched("26100.7840", server, nil, "10.0.26100.7462")},
			nodes{patched("26100.7840", server, nil, "10.0.26100.7840"), patched("26100.7841", server, nil, "10.0.26100.7462")},
			nodes{unreadable("26100.7840")}},
		"tests-2025": {nodes{with("26100.7840", "520997518", "0")}, nodes{one("20348.1")},
			nodes{one("26100.7840")}},
		"layer-25h2": {nodes{patched("26200.9168", client, nil, "10.0.26100.1")},
			nodes{patched("26200.9168", client, nil, "10.0.20348.1"), patched("26100.1", client, nil, "10.0.26100.1")},
			nodes{{Build: "26200.1", Product: client, NoImages: "no answer"}}},
		"hns-crash-2022": {nodes{one("20348.1193")}, nodes{one("20348.1194"), one("17763.1")}, nodes{one("20348")}},
		"hns-crash-2019": {nodes{one("17763.3649")}, nodes{one("17763.3650")}, nodes{one("17763")}},
		"hns-crash-2019-switch": {nil, nodes{one("17763.3649"), one("20348.3650")},
			nodes{one("17763.3650"), with("17763.3650", "HNSControlFlag", "64"), unreadable("17763.7314")}},
		"gmsa-2019":    {nodes{one("17763.1816")}, nodes{one("17763.1817")}, nodes{one("17763")}},
		"ingress-2019": {nodes{one("17763.1192"), one("17763.1217")}, nodes{one("17763.1191"), one("17763.1218")}, nodes{one("17763")}},
		"decap-2019":   {nodes{one("17763.1432")}, nodes{one("17763.1431"), one("17763.1518")}, nodes{one("17763")}},
		"afunix-2019":  {nodes{one("17763.2209")}, nodes{one("17763.2210")}, nodes{one("17763")}},
		"wcifs-25h2":   {nil, nodes{patched("22631.1", client, nil), one("26200.9168")}, nodes{patched("26200.9168", client, nil)}},
	}
}

// TestEachPatch has for each row a node that has the fault, one that has it not, and one of which nothing is guessed.
func TestEachPatch(t *testing.T) {
	cases := patchCases()
	for _, row := range combination.Patches() {
		c := cases[row.ID]
		if len(c.not) == 0 || len(c.unknown) == 0 || len(c.has) == 0 && row.Switch.Name != "HNSControlFlag" && len(row.Windows) > 0 {
			t.Errorf("row %s has not all cases", row.ID)
		}
		for _, p := range c.has {
			if found := findPatch(p, row); found == nil || found.Severity != row.Severity || !strings.HasPrefix(found.What, "the node has it") {
				t.Errorf("%s: %s has it, found %+v", row.ID, p.Build, found)
			}
		}
		for _, p := range c.not {
			if found := findPatch(p, row); found != nil {
				t.Errorf("%s: %s has it not, found %+v", row.ID, p.Build, found)
			}
		}
		for _, p := range c.unknown {
			if found := findPatch(p, row); found == nil || found.Severity != finding.Info || !strings.Contains(found.What, "cannot be determined") {
				t.Errorf("%s: cannot tell for %s, found %+v", row.ID, p.Build, found)
			}
		}
		if len(row.Sources) == 0 || row.Remedy == "" || row.Seen == "" {
			t.Errorf("row %s has no source, no remedy or no day", row.ID)
		}
	}
}

// findPatch returns the finding of a row, or nil.
func findPatch(p combination.Patched, row combination.Patch) *finding.Finding {
	for _, f := range combination.FindPatches(p) {
		if strings.HasSuffix(f.What, row.What) && strings.HasSuffix(f.Evidence, strings.Join(row.Sources, ", ")) && f.Remedy == row.Remedy {
			return &f
		}
	}
	return nil
}

// Windows reads a switch when it starts, and swdt cannot see whether it has since: a switch that is set against a fault is no
// proof that the node has it not.
func TestASetSwitchMayNotBeInUse(t *testing.T) {
	with := func(build, name, value string) combination.Patched {
		return patched(build, server, values{name: value})
	}
	cases := map[string]combination.Patched{
		"vfp-lock": with("20348.3453", "1114842764", "0"), "december-2025": with("20348.4529", "140377743", "0"),
		"december-2025-23h2": with("25398.2207", "66715279", "0"), "bugcheck-76": with("25398.2207", "2112481934", "1"),
		"tests-2025": with("26100.7840", "520997518", "1"), "hns-crash-2019-switch": with("17763.3650", "HNSControlFlag", "80"),
	}
	for _, row := range combination.Patches() {
		p, ok := cases[row.ID]
		if ok != (row.Switch.Name != "") {
			t.Errorf("row %s has no case", row.ID)
		}
		if !ok {
			continue
		}
		i := slices.IndexFunc(combination.FindPatches(p), func(f finding.Finding) bool { return strings.HasSuffix(f.What, row.What) })
		if i < 0 {
			t.Errorf("%s: nothing is found", row.ID)
			continue
		}
		found := combination.FindPatches(p)[i]
		if found.Severity != finding.Info || !strings.HasPrefix(found.What, row.Switch.Name+" is set against it") ||
			!strings.Contains(found.Evidence, "whether Windows has started since it was set is unknown") ||
			found.Remedy == row.Remedy {
			t.Errorf("%s: %+v", row.ID, found)
		}
	}
}

// An up-to-date node whose switches are off has none of the faults if Windows has read them.
func TestAnUpToDateNode(t *testing.T) {
	p := patched("20348.5499", server, values{"140377743": "0", "1114842764": "0"}, "10.0.20348.5499")
	all := combination.FindPatches(p)
	for _, found := range all {
		if found.Severity != finding.Info || !strings.HasPrefix(found.What, "140377743 is set against it") &&
			!strings.HasPrefix(found.What, "1114842764 is set against it") {
			t.Errorf("%+v", found)
		}
	}
	if len(all) != 2 {
		t.Errorf("%d findings", len(all))
	}
}
