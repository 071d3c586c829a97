package config

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/api/v1alpha1"
)

// Convert turns node files of older swdts into today's format. The older formats are kind:
// Config, kind: Node with kubernetes.deploys, and kind: Cluster with its spec.workload.
// With the new file, today's swdt does what the older swdt did with the old file, although
// some fields have another meaning today. Documents in today's format stay as they are. Comments at
// the top list the fields whose meaning has changed, and the fields for which a node file
// has no place. Convert reads the file with this path, or r if the path is Stdin. The error is
// an *Error.
func Convert(file string, r io.Reader) ([]byte, error) {
	data, problem := read(file, r)
	if problem != nil {
		return nil, asError([]Problem{*problem})
	}
	text, err := toUTF8(data)
	if err != nil {
		return nil, asError([]Problem{{File: file, Line: 1, What: err.Error(), Remedy: "save it as UTF-8 text"}})
	}
	var converted []string
	var problems []Problem
	for _, c := range splitDocuments(text) {
		document, problem := convertDocument(file, c)
		if problem != nil {
			problems = append(problems, *problem)
		} else if document != "" {
			converted = append(converted, document)
		}
	}
	if len(converted) == 0 && len(problems) == 0 {
		problems = append(problems, noNode([]string{file}))
	}
	return []byte(strings.Join(converted, "---\n")), asError(problems)
}

// convertDocument returns "" for a document without content.
func convertDocument(file string, c chunk) (string, *Problem) {
	root, problem := parseYAML(file, c)
	if problem != nil || root == nil {
		return "", problem
	}
	switch olderFormat(root) {
	case clusterFormat:
		return convertCluster(flatten(root)), nil
	case configFormat, deploysFormat:
		return convertOriginal(flatten(root)), nil
	}
	if problem := checkKind(file, c, root); problem != nil {
		return "", problem
	}
	if rdp := find(root, "spec", "setup", "enableRDP"); isFalse(rdp) && onlyOriginalFields(root) {
		return convertOriginal(flatten(root)), nil
	}
	lines := c.lines
	if isDocumentStart(lines[0]) && strings.TrimSpace(lines[0]) == "---" {
		lines = lines[1:]
	}
	return strings.TrimRight(strings.Join(lines, ""), "\n") + "\n", nil
}

// convertCluster converts the format with spec.workload.
func convertCluster(root *yaml.Node) string {
	o := newOlder(root)
	apiVersion := scalar(v1alpha1.APIVersion)
	o.comments[apiVersion] = o.comments[o.take("apiVersion")]
	o.take("kind")
	workload := func(path ...string) *yaml.Node { return o.take(append([]string{"spec", "workload"}, path...)...) }

	hostname := workload("virtualization", "ssh", "hostname")
	if hostname == nil {
		hostname = remark(scalar(""),
			"write host or host:port; the older swdt asked libvirt, as `virsh domifaddr windows` does")
	}
	privateKey := workload("virtualization", "ssh", "privateKey")
	if privateKey == nil {
		privateKey = workload("virtualization", "ssh", "key")
	}
	enableRDP := o.takeEnableRDP("spec", "workload", "auxiliary", "enableRDP")
	if find(root, "spec", "workload", "auxiliary", "enableRDP") == nil {
		enableRDP = remark(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"},
			"was the default of the older swdt; without it Remote Desktop is left alone")
	}
	version := workload("kubernetesVersion")
	if version == nil {
		version = o.take("spec", "version") // the earliest form of the format has the version in spec
	}
	return o.write(o.object(
		"apiVersion", apiVersion,
		"kind", scalar(v1alpha1.Kind),
		"metadata", o.object("name", o.take("metadata", "name"), "labels", o.take("metadata", "labels")),
		"spec", o.object(
			"credentials", o.object(
				"username", workload("virtualization", "ssh", "username"),
				"hostname", hostname,
				"privateKey", privateKey,
				"password", workload("virtualization", "ssh", "password"),
			),
			"setup", o.object("enableRDP", enableRDP, "chocoPackages", workload("auxiliary", "chocoPackages")),
			"kubernetes", o.object(
				"version", version,
				"containerd", o.object("version", workload("containerdVersion")),
				"provisioners", o.takeProvisioners("spec", "workload", "provisioners"),
			),
		),
	))
}

// convertOriginal converts the formats of the original swdt: kind: Config, and kind:
// Node, which had kubernetes.deploys at first and provisioners later.
func convertOriginal(root *yaml.Node) string {
	o := newOlder(root)
	o.take("kind")
	provisioners := o.takeProvisioners("spec", "kubernetes", "deploys")
	if provisioners == nil {
		provisioners = o.takeProvisioners("spec", "kubernetes", "provisioners")
	}
	return o.write(o.object(
		"apiVersion", o.take("apiVersion"),
		"kind", scalar(v1alpha1.Kind),
		"metadata", o.object("name", o.take("metadata", "name"), "labels", o.take("metadata", "labels")),
		"spec", o.object(
			"credentials", o.object(
				"username", o.take("spec", "credentials", "username"),
				"hostname", o.take("spec", "credentials", "hostname"),
				"privateKey", o.take("spec", "credentials", "privateKey"),
				"password", o.take("spec", "credentials", "password"),
			),
			"setup", o.object(
				"enableRDP", o.takeEnableRDP("spec", "setup", "enableRDP"),
				"chocoPackages", o.take("spec", "setup", "chocoPackages"),
			),
			"kubernetes", o.object("provisioners", provisioners),
		),
	))
}

// older is a document to convert, without aliases. It records which values the conversion
// has taken, so that the result can list the values that were not taken.
type older struct {
	root     *yaml.Node
	taken    map[*yaml.Node]bool
	comments map[*yaml.Node]string // the comment above each value's key
	meanings []string              // fields that have another meaning today
}

func newOlder(root *yaml.Node) *older {
	return &older{root: root, taken: map[*yaml.Node]bool{}, comments: map[*yaml.Node]string{}}
}

// take returns the value at the path, or nil if the value is unset. It records that the conversion
// has taken the value.
func (o *older) take(path ...string) *yaml.Node { return o.takeFrom(o.root, path...) }

func (o *older) takeFrom(n *yaml.Node, path ...string) *yaml.Node {
	key, value := findPair(n, path...)
	if value == nil {
		return nil
	}
	o.taken[value] = true
	if isNull(value) {
		return nil
	}
	o.comments[value] = key.HeadComment
	return value
}

// takeEnableRDP takes the value at the path. If the value is false, takeEnableRDP returns nil, so
// that the new field stays unset: the older swdt did nothing for false.
func (o *older) takeEnableRDP(path ...string) *yaml.Node {
	value := o.take(path...)
	if !isFalse(value) {
		return value
	}
	o.meanings = append(o.meanings, strings.Join(path, ".")+
		": false left Remote Desktop as it was; today false turns it off")
	return nil
}

// takeProvisioners takes the fields that a provisioner still has today. It drops
// overwrite: false, since the older swdt replaced the file even then.
func (o *older) takeProvisioners(path ...string) *yaml.Node {
	list := find(o.root, path...)
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	items := &yaml.Node{Kind: yaml.SequenceNode}
	for i, item := range list.Content {
		overwrite := o.takeFrom(item, "overwrite")
		if isFalse(overwrite) {
			o.meanings = append(o.meanings,
				fmt.Sprintf("%s[%d].overwrite: false did not keep the old file; today false keeps "+
					"a different file", strings.Join(path, "."), i))
			overwrite = nil
		}
		provisioner := o.object(
			"name", o.takeFrom(item, "name"),
			"version", o.takeFrom(item, "version"),
			"sourceURL", o.takeFrom(item, "sourceURL"),
			"destination", destination(o.takeFrom(item, "destination")),
			"overwrite", overwrite,
		)
		if provisioner == nil {
			continue // the conversion took nothing of the item, so the method left lists the item
		}
		provisioner.HeadComment = item.HeadComment
		items.Content = append(items.Content, provisioner)
	}
	return items
}

// destination adds a remark if the destination looks like a folder, as in the first
// samples.
func destination(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.ScalarNode && !strings.Contains(n.Value[strings.LastIndexAny(n.Value, `\/`)+1:],
		".") {
		return remark(n, "looks like a folder: write the path of the file")
	}
	return n
}

// write returns the new document. Its header lists the fields whose meaning has changed,
// and the older fields that the new document lacks.
func (o *older) write(document *yaml.Node) string {
	var out bytes.Buffer
	out.WriteString("# Written by `swdt config convert` from an older file.\n")
	list := func(heading string, lines []string) {
		if len(lines) > 0 {
			out.WriteString("# " + heading + "\n#   " + strings.Join(lines, "\n#   ") + "\n")
		}
	}
	list("Left out, since these fields have another meaning today:", o.meanings)
	list("Not carried over, since a node file has no place for it:", o.left(o.root, ""))
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(document); err != nil {
		panic(err) // cannot fail: a tree of plain nodes is written into memory
	}
	return out.String()
}

// left lists the fields that the conversion did not take. For fields whose names suggest a
// secret, it omits the value.
func (o *older) left(n *yaml.Node, path string) (lines []string) {
	switch {
	case o.taken[n]:
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
