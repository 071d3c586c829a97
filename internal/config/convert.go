package config

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// Convert turns node files of older swdts into today's: kind: Cluster with its
// spec.workload, and kind: Node with kubernetes.deploys. Today's documents are
// passed on as they are. What has no place in a node file, and what is missing,
// is said in comments. The error is an *Error.
func Convert(r io.Reader) ([]byte, error) {
	data, problem := read(Stdin, r)
	if problem != nil {
		return nil, asError([]Problem{*problem})
	}
	text, err := toUTF8(data)
	if err != nil {
		return nil, asError([]Problem{{File: Stdin, Line: 1, What: err.Error(), Remedy: "save it as UTF-8 text"}})
	}
	var converted []string
	var problems []Problem
	for _, c := range splitDocuments(text) {
		document, problem := convertDocument(c)
		if problem != nil {
			problems = append(problems, *problem)
		} else if document != "" {
			converted = append(converted, document)
		}
	}
	if len(converted) == 0 && len(problems) == 0 {
		problems = append(problems, noNode([]string{Stdin}))
	}
	return []byte(strings.Join(converted, "---\n")), asError(problems)
}

// convertDocument returns nothing for a document that has nothing in it.
func convertDocument(c chunk) (string, *Problem) {
	root, problem := parseYAML(Stdin, c)
	if problem != nil || root == nil {
		return "", problem
	}
	kind := root
	if root.Kind == yaml.MappingNode {
		kind = orNode(child(root, "kind"), root)
	}
	switch {
	case kind.Kind == yaml.ScalarNode && kind.Value == "Cluster" && isOurs(child(root, "apiVersion")):
		return convertCluster(root), nil
	case checkKind(Stdin, c, root) != nil:
		return "", checkKind(Stdin, c, root)
	case find(root, "spec", "kubernetes", "deploys") != nil:
		return convertDeploys(root), nil
	}
	lines := c.lines
	if isDocumentStart(lines[0]) && strings.TrimSpace(lines[0]) == "---" {
		lines = lines[1:]
	}
	return strings.TrimRight(strings.Join(lines, ""), "\n") + "\n", nil
}

// convertCluster is for the format with spec.workload.
func convertCluster(root *yaml.Node) string {
	o := older{root: root, taken: map[*yaml.Node]bool{}}
	o.take("apiVersion")
	o.take("kind")
	workload := func(path ...string) *yaml.Node { return o.take(append([]string{"spec", "workload"}, path...)...) }

	hostname := workload("virtualization", "ssh", "hostname")
	if hostname == nil {
		hostname = remark(scalar(""), "the older file has none; write host or host:port")
	}
	enableRDP := workload("auxiliary", "enableRDP")
	if enableRDP == nil {
		enableRDP = remark(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"}, "was the default of the older swdt; without it Remote Desktop is left alone")
	}
	return o.write(object(
		"apiVersion", scalar(v1alpha1.APIVersion),
		"kind", scalar(v1alpha1.Kind),
		"metadata", object("name", o.take("metadata", "name"), "labels", o.take("metadata", "labels")),
		"spec", object(
			"credentials", object(
				"username", workload("virtualization", "ssh", "username"),
				"hostname", hostname,
				"privateKey", workload("virtualization", "ssh", "privateKey"),
				"password", workload("virtualization", "ssh", "password"),
			),
			"setup", object("enableRDP", enableRDP, "chocoPackages", workload("auxiliary", "chocoPackages")),
			"kubernetes", object("provisioners", o.takeProvisioners("spec", "workload", "provisioners")),
		),
	))
}

// convertDeploys is for the first published Node, which had other words.
func convertDeploys(root *yaml.Node) string {
	o := older{root: root, taken: map[*yaml.Node]bool{}}
	return o.write(object(
		"apiVersion", o.take("apiVersion"),
		"kind", o.take("kind"),
		"metadata", o.take("metadata"),
		"spec", object(
			"credentials", o.take("spec", "credentials"),
			"setup", o.take("spec", "setup"),
			"kubernetes", object("provisioners", o.takeProvisioners("spec", "kubernetes", "deploys")),
		),
	))
}

// older is a document to convert; what is not taken from it is reported.
type older struct {
	root  *yaml.Node
	taken map[*yaml.Node]bool
}

// take returns a copy of the value at the path, nil if it is unset.
func (o *older) take(path ...string) *yaml.Node {
	n := find(o.root, path...)
	if n == nil {
		return nil
	}
	o.taken[n] = true
	if isNull(n) {
		return nil
	}
	budget := maxNodes
	return withoutAliases(n, &budget)
}

// takeProvisioners takes the fields that a provisioner still has.
func (o *older) takeProvisioners(path ...string) *yaml.Node {
	list := find(o.root, path...)
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	items := &yaml.Node{Kind: yaml.SequenceNode}
	for _, item := range list.Content {
		item = resolveAlias(item)
		from := older{root: item, taken: o.taken}
		provisioner := object(
			"name", from.take("name"),
			"version", from.take("version"),
			"sourceURL", from.take("sourceURL"),
			"destination", from.take("destination"),
			"overwrite", from.take("overwrite"),
		)
		if provisioner == nil {
			continue // left reports whatever it is
		}
		provisioner.HeadComment = item.HeadComment
		items.Content = append(items.Content, provisioner)
	}
	return items
}

// write is the new document, headed by what it lacks of the older one.
func (o *older) write(document *yaml.Node) string {
	var out bytes.Buffer
	out.WriteString("# Written by `swdt config convert` from an older file.\n")
	if left := o.left(o.root, ""); len(left) > 0 {
		out.WriteString("# Not carried over, since a node file has no place for it:\n")
		for _, line := range left {
			out.WriteString("#   " + line + "\n")
		}
	}
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(document); err != nil {
		panic(err) // a tree of plain nodes into memory
	}
	return out.String()
}

// left lists what was not taken. Values of fields that sound secret stay out.
func (o *older) left(n *yaml.Node, path string) (lines []string) {
	switch {
	case o.taken[resolveAlias(n)]:
	case n.Kind == yaml.AliasNode: // not followed: it may lead back here
		lines = append(lines, path)
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			lines = append(lines, o.left(n.Content[i+1], join(path, displayKey(n.Content[i].Value)))...)
		}
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			lines = append(lines, o.left(item, fmt.Sprintf("%s[%d]", path, i))...)
		}
	case isNull(n):
	case strings.Contains(strings.ToLower(path), "passw"):
		lines = append(lines, path)
	default:
		lines = append(lines, fmt.Sprintf("%s: %s", path, displayKey(n.Value)))
	}
	return lines
}

// find follows a path of keys; nil if it ends early.
func find(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		n = child(n, key)
	}
	return n
}

// object is a mapping of key, value, key, value…, without those that are nil or
// empty mappings; an empty object is nil too.
func object(pairs ...any) *yaml.Node {
	mapping := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(pairs); i += 2 {
		if value, _ := pairs[i+1].(*yaml.Node); value != nil {
			mapping.Content = append(mapping.Content, scalar(pairs[i].(string)), value)
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

// withoutAliases copies a tree, with what its aliases stand for.
func withoutAliases(n *yaml.Node, budget *int) *yaml.Node {
	n = resolveAlias(n)
	plain := *n
	plain.Anchor, plain.Alias, plain.Content = "", nil, nil
	for _, inside := range n.Content {
		if *budget--; *budget > 0 {
			plain.Content = append(plain.Content, withoutAliases(inside, budget))
		}
	}
	return &plain
}
