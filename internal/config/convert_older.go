package config

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// older is a document to convert, without aliases. It records which values the conversion
// has taken, so that the result can list the values that were not taken.
type older struct {
	file     string
	chunk    chunk
	root     *yaml.Node
	taken    map[*yaml.Node]bool
	comments map[*yaml.Node]string // the comment above each value's key
	meanings []string              // fields that have another meaning today
	reasons  map[string]string     // the keys are paths of fields; these reasons replace the usual ones of whyLeft
}

// newOlder returns the document of a file whose text is c and whose root node is root.
func newOlder(file string, c chunk, root *yaml.Node) *older {
	return &older{
		file: file, chunk: c, root: flatten(root), taken: map[*yaml.Node]bool{}, comments: map[*yaml.Node]string{},
		reasons: map[string]string{},
	}
}

// at returns the file and the line of a value, for a comment. It quotes a file name that contains
// unprintable characters, since a line break would end the comment.
func (o *older) at(n *yaml.Node) string {
	file := o.file
	if strings.ContainsFunc(file, func(r rune) bool { return !unicode.IsPrint(r) }) {
		file = strconv.Quote(file)
	}
	return fmt.Sprintf("%s:%d: ", file, o.chunk.lineNumber(n.Line))
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
	o.meanings = append(o.meanings, o.at(value)+strings.Join(path, ".")+
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
				fmt.Sprintf("%s%s[%d].overwrite: false did not keep the old file; today false keeps "+
					"a different file", o.at(overwrite), strings.Join(path, "."), i))
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
// samples of the original swdt.
func destination(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.ScalarNode && !strings.Contains(n.Value[strings.LastIndexAny(n.Value, `\/`)+1:],
		".") {
		return remark(n, "looks like a folder: write the path of the file")
	}
	return n
}

// write returns the new documents. Their header lists the fields whose meaning has changed, and the
// older fields that the new documents lack. write omits a document that is nil.
func (o *older) write(documents ...*yaml.Node) string {
	var out bytes.Buffer
	out.WriteString("# Written by `swdt config convert` from an older file.\n")
	list := func(heading string, lines []string) {
		if len(lines) > 0 {
			out.WriteString("# " + heading + "\n#   " + strings.Join(lines, "\n#   ") + "\n")
		}
	}
	list("Left out, since these fields have another meaning today:", o.meanings)
	list("Not carried over:", o.left(o.root, "", ""))
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for _, document := range documents {
		if document == nil {
			continue
		}
		if err := encoder.Encode(document); err != nil {
			panic(err) // cannot fail: a tree of plain nodes is written into memory
		}
	}
	return out.String()
}

// left lists the fields that the conversion did not take, each with its line and the reason. For
// fields whose names suggest a secret, it omits the value. path is the path of n, and kind is the
// same path without indices.
func (o *older) left(n *yaml.Node, path, kind string) (lines []string) {
	switch {
	case o.taken[n]:
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			lines = append(lines, o.left(n.Content[i+1], join(path, displayKey(name)), join(kind, name))...)
		}
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			lines = append(lines, o.left(item, fmt.Sprintf("%s[%d]", path, i), kind)...)
		}
	case isNull(n):
	case strings.Contains(strings.ToLower(path), "passw"):
		lines = append(lines, o.at(n)+path+"; "+o.whyLeft(kind))
	default:
		lines = append(lines, fmt.Sprintf("%s%s: %s; %s", o.at(n), path, displayKey(n.Value), o.whyLeft(kind)))
	}
	return lines
}

// whyLeft returns the reason why a field is not carried over. path is the field's path without indices.
func (o *older) whyLeft(path string) string {
	reasons := map[string]string{
		"metadata.namespace":                  "a document has no namespace",
		"spec.controlPlane.minikube":          "swdt makes the control plane with kind",
		"spec.controlPlane.kubernetesVersion": "the version of a cluster that swdt does not make is its own",
		"spec.workload.virtualization.kvmQemuURI": "the node has a hostname, so it needs no VM of swdt; " +
			"`swdt vm` starts its VM with spec.machine: {driver: libvirt, domain: windows}",
		"spec.workload.virtualization.diskPath": "the libvirt domain has this disk; " +
			"for a VM that swdt makes from it, write spec.machine: {image: {disk: …}}",
		"spec.workload.provisioners.permission": "Windows has no such permissions",
	}
	return cmp.Or(o.reasons[path], reasons[path], "swdt has no such setting")
}
