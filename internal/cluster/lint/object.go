package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetesjson "sigs.k8s.io/json"

	"github.com/swdt-dev/swdt/internal/cluster/documents"
)

// object is one object of a file.
type object struct {
	file                  string
	checked               checked
	node                  *yaml.Node
	in                    part
	group                 string // of its apiVersion; "": the core group
	kind, name, namespace string
	template              path     // of its pods
	pods                  *pods    // the pods that it makes; nil: none
	ignores               []ignore // in the order of the file
	knownRules            map[string]bool
	badIgnores            []badIgnore
	duplicates            []path // keys that are there before, in the same mapping
	wrong                 error  // why the API server cannot read its pods
}

// part is the place of an object: a part of a text that has one document, and the path in it.
type part struct {
	text       int // its index
	begin, end int // offsets
	path       path
}

// String returns the kind with the name, such as "DaemonSet kube-system/csi-smb-node-win".
func (o *object) String() string {
	name := o.name
	if o.namespace != "" && name != "" {
		name = o.namespace + "/" + name
	}
	return strings.TrimSpace(o.kind + " " + name)
}

// path is a place inside an object: keys, and [N] for an item of a list.
type path []string

func (p path) child(keys ...string) path { return append(slices.Clip(p), keys...) }
func (p path) index(i int) path          { return append(slices.Clip(p), fmt.Sprintf("[%d]", i)) }

// String returns the path as the API server writes it, such as spec.nodeSelector[kubernetes.io/os].
func (p path) String() string {
	var b strings.Builder
	for _, part := range p {
		switch {
		case strings.HasPrefix(part, "["):
			b.WriteString(part)
		case strings.ContainsAny(part, "./"):
			b.WriteString("[" + part + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(part)
		}
	}
	return b.String()
}

// mistyped returns the path of the value that an error is about. The error's own path has no indices: of the values that
// it can mean, the first of the wrong kind counts.
func (o *object) mistyped(wrong *json.UnmarshalTypeError) path {
	parts := strings.Split(wrong.Field, ".")
	places := []path{o.template}
	for _, part := range parts[:len(parts)-1] {
		var next []path
		for _, p := range places {
			next = append(next, o.items(p.child(part))...)
		}
		if len(next) > 0 { // the name of an embedded struct is no field
			places = next
		}
	}
	kinds := map[string]yaml.Kind{"array": yaml.SequenceNode, "object": yaml.MappingNode}
	for _, p := range places {
		p = p.child(parts[len(parts)-1])
		if value := o.at(p); value != nil && value.Kind == cmp.Or(kinds[wrong.Value], yaml.ScalarNode) {
			return p
		}
	}
	return o.template
}

// items returns the paths of the items of a list at a path, or the path itself.
func (o *object) items(p path) []path {
	value := o.at(p)
	if value == nil {
		return nil
	}
	if value.Kind != yaml.SequenceNode {
		return []path{p}
	}
	all := []path{}
	for i := range value.Content {
		all = append(all, p.index(i))
	}
	return all
}

// split returns the path that a text such as spec.template has.
func split(text string) path { return strings.Split(text, ".") }

// at returns the value at a path; nil if it has none, or null.
func (o *object) at(p path) *yaml.Node {
	_, value := o.find(p)
	if value == nil || value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null" {
		return nil
	}
	return value
}

// find returns the value at a path, and the node whose line names it: its key, or itself if it is an item of a list. If
// the object ends before the path does, value is nil, and named is the last node on the way.
func (o *object) find(p path) (named, value *yaml.Node) {
	named, value = o.node, o.node
	for _, part := range p {
		var key, next *yaml.Node
		if i, ok := indexOf(part); ok {
			if value.Kind != yaml.SequenceNode || i >= len(value.Content) {
				return named, nil
			}
			next = value.Content[i]
			key = next
		} else if key, next = documents.Pair(value, part); next == nil {
			return named, nil
		}
		named, value = key, next
	}
	return named, value
}

func indexOf(part string) (i int, ok bool) {
	inner, ok := strings.CutPrefix(part, "[")
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(strings.TrimSuffix(inner, "]"))
	return i, err == nil && i >= 0
}

// templates returns where the kinds of Kubernetes have the template of their pods; "": the object is a pod itself.
func templates() map[string]string {
	return map[string]string{
		"Pod": "", "PodTemplate": "template", "ReplicationController": "spec.template",
		"Deployment": "spec.template", "ReplicaSet": "spec.template", "StatefulSet": "spec.template", "DaemonSet": "spec.template",
		"Job": "spec.template", "CronJob": "spec.jobTemplate.spec.template",
	}
}

// readPods reads the pods of an object. others are the paths of kinds that Kubernetes does not have.
func (o *object) readPods(others map[string]string) {
	where, known := others[o.kind]
	if !known {
		where, known = templates()[o.kind]
		known = known && slices.Contains([]string{"", "apps", "batch", "extensions"}, o.group)
	}
	if !known {
		return
	}
	var at path
	if where != "" {
		at = split(where)
	}
	if o.at(at.child("spec")) == nil {
		return
	}
	o.template = at
	var template struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     corev1.PodSpec    `json:"spec"`
	}
	if o.wrong = o.decode(at, &template); o.wrong != nil {
		return
	}
	o.pods = &pods{object: o, path: at.child("spec"), meta: template.Metadata, spec: template.Spec}
}

// decode reads the value at a path into a type of the API, as the API server does: names of fields have one spelling.
func (o *object) decode(p path, into any) error {
	text, err := json.Marshal(plain(o.at(p)))
	if err != nil {
		return err
	}
	return kubernetesjson.UnmarshalCaseSensitivePreserveInts(text, into)
}

// plain returns a value as JSON has it. Like kubectl, it reads the words of YAML 1.1 for booleans.
func plain(n *yaml.Node) any {
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.MappingNode:
		all := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			all[n.Content[i].Value] = plain(n.Content[i+1])
		}
		return all
	case n.Kind == yaml.SequenceNode:
		all := []any{}
		for _, item := range n.Content {
			all = append(all, plain(item))
		}
		return all
	}
	return scalar(n)
}

func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		var number float64
		var whole int64
		if n.Decode(&whole) == nil {
			return whole
		}
		if n.Decode(&number) == nil && !math.IsInf(number, 0) && !math.IsNaN(number) {
			return number
		}
	case "!!str":
		if n.Style == 0 {
			switch strings.ToLower(n.Value) {
			case "y", "yes", "on":
				return true
			case "n", "no", "off":
				return false
			}
		}
	}
	return n.Value
}
