package cluster

import "strings"

// SameMachine compares the system UUIDs of two machines, such as the one that a node
// reports and the one in a Node object. known reports whether both UUIDs are available;
// same implies it.
func SameMachine(a, b string) (same, known bool) {
	known = a != "" && b != ""
	return known && strings.EqualFold(a, b), known
}
