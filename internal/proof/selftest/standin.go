package selftest

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
)

// standIns has a report of each stand-in that was recorded: the simulated node, which TestSelftestOnASandbox writes with
// -update-stand-in, and a node under Wine, which TestSelftestOnAWineNode writes with the same flag.
//
//go:embed standins
var standIns embed.FS

// StandIns are the names of the stand-ins, which are also the names of their files.
func StandIns() []string { return []string{"simulated", "wine"} }

// standIn returns the recorded report of a stand-in.
func standIn(name string) (Report, error) {
	text, err := standIns.ReadFile("standins/" + name + ".json")
	if err != nil {
		return Report{}, err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return Report{}, fmt.Errorf("read the answers of the stand-in %s: %w", name, err)
	}
	return r, nil
}

// differencesFromStandIns compares a report with those of the stand-ins.
func differencesFromStandIns(r Report) []Difference {
	all := []Difference{}
	for _, name := range StandIns() {
		other, err := standIn(name)
		if err != nil { // TestStandInsAreReadable checks that it is readable
			continue
		}
		for _, difference := range compareClaims(r.Claims, other.Claims) {
			if varies(name, difference) {
				continue
			}
			difference.StandIn = name
			all = append(all, difference)
		}
	}
	return all
}

// varies reports whether a stand-in was seen to give both answers, so that neither is a difference. A simulated node has
// events if something has happened on it before. To a removal of a running program, Wine answers that access is denied,
// or that the file is in use. A restart of a Wine node in the middle of a push ends with the version before or the one
// after, according to how far the push had come.
func varies(standIn string, d Difference) bool {
	var both []string
	switch {
	case standIn == "wine" && d.Claim == "guardian" && d.Key == versionAfterRestart:
		both = []string{"v1", "v2"}
	case standIn == "simulated" && d.Claim == "events" && d.Key == hasEvents:
		both = []string{"true", "false"}
	case standIn == "wine" && d.Claim == "running" && (d.Key == removalDenied || d.Key == removalInUse):
		both = []string{"true", "false"}
	}
	return slices.Contains(both, d.Here) && slices.Contains(both, d.There)
}
