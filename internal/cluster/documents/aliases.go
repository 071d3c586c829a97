package documents

import "go.yaml.in/yaml/v3"

// MostAliased bounds the values that the aliases of a document stand for, since ten lines can stand for millions.
const MostAliased = 100_000

// Deepest bounds the values around a value. Objects of Kubernetes have about 50.
const Deepest = 100

// Expanded returns the first value of a document with each alias replaced by its value, and each << by the pairs that
// it merges. An alias that leads into itself, or that stands for too much, is null, and so is a value that is too deep;
// cut reports both. Comments on the document become comments on the value.
func Expanded(document *yaml.Node) (n *yaml.Node, cut bool) {
	e := expansion{left: MostAliased, open: map[*yaml.Node]bool{}}
	n = e.value(document.Content[0], false)
	n.HeadComment = joined(document.HeadComment, n.HeadComment)
	n.FootComment = joined(n.FootComment, document.FootComment)
	return n, e.cut
}

// joined returns two comments as one.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// expansion is the expansion of one document.
type expansion struct {
	left int                 // values of aliases
	deep int                 // values around the present one
	open map[*yaml.Node]bool // values with an anchor around the present one
	cut  bool                // something was left out
}

// value returns a copy of a value. aliased reports that an alias stands for it, or for a value around it.
func (e *expansion) value(n *yaml.Node, aliased bool) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n, aliased = n.Alias, true
	}
	if aliased {
		e.left--
	}
	if e.left < 0 || e.open[n] || e.deep == Deepest && len(n.Content) > 0 {
		e.cut = true
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line}
	}
	e.deep++
	defer func() { e.deep-- }()
	if n.Anchor != "" {
		e.open[n] = true
		defer delete(e.open, n)
	}
	c := *n
	c.Content = nil
	if n.Kind == yaml.MappingNode {
		e.pairs(&c, n, aliased)
		return &c
	}
	for _, item := range n.Content {
		c.Content = append(c.Content, e.value(item, aliased))
	}
	return &c
}

// pairs adds the pairs of a mapping to its copy, then those that it merges under keys that it does not have.
func (e *expansion) pairs(c, n *yaml.Node, aliased bool) {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		value := e.value(n.Content[i+1], aliased)
		if isMerge(n.Content[i]) {
			merged = append(merged, sources(value)...)
			continue
		}
		c.Content = append(c.Content, e.value(n.Content[i], aliased), value)
	}
	if len(merged) == 0 {
		return
	}
	has := map[string]bool{}
	for i := 0; i < len(c.Content); i += 2 {
		has[c.Content[i].Value] = true
	}
	for _, source := range merged {
		for i := 0; i+1 < len(source.Content); i += 2 {
			if key := source.Content[i]; !has[key.Value] {
				has[key.Value] = true
				c.Content = append(c.Content, key, source.Content[i+1])
			}
		}
	}
}

func isMerge(key *yaml.Node) bool { return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" }

// sources returns the mappings that the value of << has: one, or a list.
func sources(value *yaml.Node) (all []*yaml.Node) {
	candidates := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		candidates = value.Content
	}
	for _, one := range candidates {
		if one.Kind == yaml.MappingNode {
			all = append(all, one)
		}
	}
	return all
}
