package config

import "go.yaml.in/yaml/v3"

// find returns the value at a path of keys, or nil if a key is missing.
func find(n *yaml.Node, path ...string) *yaml.Node {
	_, value := findPair(n, path...)
	return value
}

// findPair returns the last key of a path and its value. If a key is missing, both are nil.
func findPair(n *yaml.Node, path ...string) (key, value *yaml.Node) {
	value = n
	for _, name := range path {
		if value == nil || value.Kind != yaml.MappingNode {
			return nil, nil
		}
		key, value = pair(value, name)
	}
	return key, value
}

func isFalse(n *yaml.Node) bool {
	var b bool
	return n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" && n.Decode(&b) == nil && !b
}

func isTrue(n *yaml.Node) bool {
	var b bool
	return n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" && n.Decode(&b) == nil && b
}

// object returns a mapping of the pairs, which are key, value, key, value…. It omits each
// pair whose value is nil. If no pair is left, it returns nil.
func (o *older) object(pairs ...any) *yaml.Node {
	mapping := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(pairs); i += 2 {
		if value, _ := pairs[i+1].(*yaml.Node); value != nil {
			key := scalar(pairs[i].(string))
			key.HeadComment = o.comments[value]
			mapping.Content = append(mapping.Content, key, value)
		}
	}
	if len(mapping.Content) == 0 {
		return nil
	}
	return mapping
}

func scalar(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	return n
}

func remark(n *yaml.Node, comment string) *yaml.Node {
	n.LineComment = "# " + comment
	return n
}

// flatten copies a tree of at most maxNodes nodes, and omits the rest. It replaces aliases by
// their values, and adds the pairs of merged mappings (<<) to the mappings that name them.
func flatten(root *yaml.Node) *yaml.Node {
	budget := maxNodes
	return flattened(root, &budget)
}

func flattened(n *yaml.Node, budget *int) *yaml.Node {
	n = resolveAlias(n)
	plain := *n
	plain.Anchor, plain.Alias, plain.Content = "", nil, nil
	var merged []*yaml.Node
	for i, inside := range n.Content {
		if *budget--; *budget <= 0 {
			break
		}
		copied := flattened(inside, budget)
		switch {
		case n.Kind == yaml.MappingNode && i%2 == 1 && isMerge(n.Content[i-1]):
			plain.Content = plain.Content[:len(plain.Content)-1]
			merged = append(merged, copied)
		default:
			plain.Content = append(plain.Content, copied)
		}
	}
	for _, source := range merged {
		mergeInto(&plain, source)
	}
	return &plain
}

// mergeInto adds the pairs of source to a mapping, except for keys that the mapping
// already has. source is a mapping or a list of mappings.
func mergeInto(mapping, source *yaml.Node) {
	if source.Kind == yaml.SequenceNode {
		for _, one := range source.Content {
			mergeInto(mapping, one)
		}
		return
	}
	for i := 0; source.Kind == yaml.MappingNode && i+1 < len(source.Content); i += 2 {
		if child(mapping, source.Content[i].Value) == nil {
			mapping.Content = append(mapping.Content, source.Content[i], source.Content[i+1])
		}
	}
}
