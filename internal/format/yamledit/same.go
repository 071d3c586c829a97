package yamledit

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// same reports whether two documents say the same: the same values, with the keys of each mapping in any order. Comments,
// styles and places do not count.
func same(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Anchor != b.Anchor || len(a.Content) != len(b.Content) || a.ShortTag() != b.ShortTag() || a.Value != b.Value {
		return false
	}
	if a.Kind == yaml.MappingNode {
		return samePairs(a, b)
	}
	return slices.EqualFunc(a.Content, b.Content, same)
}

// samePairs reports whether two mappings of one length have the same pairs. A key may be there twice; then the order
// among the same keys counts.
func samePairs(a, b *yaml.Node) bool {
	values := map[string][]*yaml.Node{}
	for i := 0; i+1 < len(b.Content); i += 2 {
		values[b.Content[i].Value] = append(values[b.Content[i].Value], b.Content[i+1])
	}
	for i := 0; i+1 < len(a.Content); i += 2 {
		key := a.Content[i].Value
		if len(values[key]) == 0 || !same(a.Content[i+1], values[key][0]) {
			return false
		}
		values[key] = values[key][1:]
	}
	return true
}
