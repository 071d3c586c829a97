package goroutines

import (
	"cmp"
	"slices"
	"strings"
)

// Group is a set of goroutines with the same functions, state and creator.
type Group struct {
	Count     int      `json:"count"`
	State     string   `json:"state"`
	Minutes   int      `json:"minutes"` // of the goroutine that has been in this state for the longest time; 0: less than one
	IDs       []uint64 `json:"ids"`     // the numbers of the goroutines, the lowest first; no more than 32
	Frames    []string `json:"frames"`  // the functions, the innermost first
	CreatedBy string   `json:"createdBy"`
}

// MostIDs bounds the numbers of goroutines in a group.
const MostIDs = 32

// Groups returns the goroutines in groups, the longest wait first.
func (d Dump) Groups() []Group {
	groups := []Group{}
	at := map[string]int{}
	for _, g := range d.Goroutines {
		key := g.State + "\n" + g.CreatedBy + "\n" + strings.Join(g.Frames, "\n")
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key] = i
			groups = append(groups, Group{State: g.State, Frames: append([]string{}, g.Frames...), CreatedBy: g.CreatedBy, IDs: []uint64{}})
		}
		groups[i].Count++
		groups[i].Minutes = max(groups[i].Minutes, g.Minutes)
		groups[i].IDs = append(groups[i].IDs, g.ID)
	}
	for i := range groups {
		slices.Sort(groups[i].IDs)
		groups[i].IDs = groups[i].IDs[:min(len(groups[i].IDs), MostIDs)]
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Minutes, a.Minutes), cmp.Compare(b.Count, a.Count), cmp.Compare(a.State, b.State),
			slices.Compare(a.Frames, b.Frames))
	})
	return groups
}
