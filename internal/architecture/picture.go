package architecture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Picture returns a Mermaid flowchart: a box for each room, a frame for each side,
// and the arrows of imports. An arrow that follows from others is left out: if cli
// imports push and push imports node, the arrow from cli to node is not drawn.
func Picture(imports map[string]map[string]bool) string {
	var page strings.Builder
	page.WriteString("```mermaid\nflowchart TD\n")
	for _, side := range []Side{Tools, YourMachine, StandIns, BothSides, Node} {
		fmt.Fprintf(&page, "  subgraph %s[\"%s\"]\n", strings.ReplaceAll(string(side), " ", "_"), side)
		for _, floor := range slices.Backward(Floors()) {
			for _, room := range floor {
				if room.Side == side {
					fmt.Fprintf(&page, "    %s[\"<b>%s</b><br/>%s\"]\n", room.Name, room.Name, room.Is)
				}
			}
		}
		page.WriteString("  end\n")
	}
	arrows := Arrows(imports)
	for _, from := range slices.Sorted(maps.Keys(arrows)) {
		for _, to := range slices.Sorted(maps.Keys(arrows[from])) {
			if !follows(arrows, from, to) {
				fmt.Fprintf(&page, "  %s --> %s\n", from, to)
			}
		}
	}
	page.WriteString("```\n")
	return page.String()
}

// follows reports whether imports lead from one room to another also by way of a third room.
func follows(arrows map[string]map[string]bool, from, to string) bool {
	for next := range arrows[from] {
		if next != to && reaches(arrows, next, to) {
			return true
		}
	}
	return false
}

// reaches reports whether imports lead from one room to another, directly or by way of other rooms.
// The rules allow no cycle of imports, so the recursion ends.
func reaches(arrows map[string]map[string]bool, from, to string) bool {
	if from == to {
		return true
	}
	for next := range arrows[from] {
		if reaches(arrows, next, to) {
			return true
		}
	}
	return false
}
