package upgradecheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swdt-dev/swdt/internal/cluster/documents"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
)

// deepest bounds the nesting of a document.
const deepest = 64

// ownGroup begins the apiVersion of swdt's own documents. GMSACredentialSpec of Kubernetes has the same group.
const ownGroup = "windows.k8s.io/"

// Documents reads YAML or JSON: objects of Kubernetes, configuration files, or any other documents in which settings
// are in known places. A text that is no YAML, such as a template, is read as a script.
func (r *Reader) Documents(text []byte, place Place) {
	var err error
	documents.Each(text, func(d documents.Document) {
		r.noteCut(d.Cut, place)
		r.object(d.Value, place)
	}, func(b documents.Broken) { err = cmp.Or(err, b.Err) })
	if err != nil {
		r.unread(place, fmt.Sprintf("is not YAML, so only flags and gates in its text were looked for: %v", err))
		r.Script(string(text), place)
	}
}

// noteCut records that some aliases of a document were not followed.
func (r *Reader) noteCut(cut bool, place Place) {
	if cut {
		r.unread(place, fmt.Sprintf("has values below %d others, or aliases that lead into themselves or stand for more than %d values: these were not read",
			documents.Deepest, documents.MostAliased))
	}
}

// expanded returns the value of a document without aliases.
func (r *Reader) expanded(document *yaml.Node, place Place) *yaml.Node {
	n, cut := documents.Expanded(document)
	r.noteCut(cut, place)
	return n
}

// object reads one object.
func (r *Reader) object(n *yaml.Node, place Place) {
	kind, name := documents.Text(n, "kind"), documents.Text(n, "metadata", "name")
	switch kind {
	case kubesettings.Kubelet.Kind():
		r.config(kubesettings.Kubelet, n, ConfigFile, place)
		return
	case kubesettings.KubeProxy.Kind():
		r.config(kubesettings.KubeProxy, n, ConfigFile, place)
		return
	case "Secret": // its data is none of swdt's business
		return
	case "Node", "Cluster":
		if strings.HasPrefix(documents.Text(n, "apiVersion"), ownGroup) {
			r.NodeFiles = append(r.NodeFiles, place.at(n.Line))
			return
		}
	}
	if items := documents.Items(n); len(items) != 1 || items[0].Value != n {
		for _, item := range items {
			r.object(item.Value, place)
		}
		return
	}
	if kind != "" && name != "" {
		if namespace := documents.Text(n, "metadata", "namespace"); namespace != "" {
			name = namespace + "/" + name
		}
		place.Object = kind + " " + name
	}
	w := walk{r: r, place: place, namespace: documents.Text(n, "metadata", "namespace")}
	if kind == "ConfigMap" {
		w.configMap = w.namespace + "/" + documents.Text(n, "metadata", "name")
	}
	w.node(n, nil, 0)
}

// walk goes through one object.
type walk struct {
	r         *Reader
	place     Place
	namespace string
	configMap string // namespace/name if it is one
}

// at returns the place of a node of the document.
func (w *walk) at(n *yaml.Node, path []string) Place {
	p := w.place
	if p.File != "" {
		p.Line = n.Line
	}
	if p.Object != "" || p.File == "" {
		p.Field = strings.Join(path, ".")
	}
	return p
}

func (w *walk) node(n *yaml.Node, path []string, depth int) {
	if depth > deepest {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		if w.special(n, path) {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			at := append(slices.Clip(path), key.Value)
			if !w.named(key.Value, value, at) {
				w.node(value, at, depth+1)
			}
		}
	case yaml.SequenceNode:
		if w.settingsList(n, path) {
			return
		}
		for i, item := range n.Content {
			at := slices.Clip(path)
			if len(at) > 0 {
				at = append(at[:len(at)-1:len(at)-1], fmt.Sprintf("%s[%d]", at[len(at)-1], i))
			}
			w.node(item, at, depth+1)
		}
	case yaml.ScalarNode:
		w.scalar(n, path)
	}
}

// special reads mappings that have a form of their own, and reports whether it has read all of it.
func (w *walk) special(n *yaml.Node, path []string) bool {
	switch {
	case documents.Child(n, "containers") != nil:
		w.pods(n, path)
		return true
	case documents.Text(n, "kind") == kubesettings.Kubelet.Kind():
		w.r.config(kubesettings.Kubelet, n, ConfigFile, w.at(n, path))
		return true
	case documents.Text(n, "kind") == kubesettings.KubeProxy.Kind():
		w.r.config(kubesettings.KubeProxy, n, ConfigFile, w.at(n, path))
		return true
	}
	return false
}

// named reads the value of a key that has settings, and reports whether it has read it.
func (w *walk) named(key string, value *yaml.Node, path []string) bool {
	switch {
	case key == "kubeletExtraArgs": // kubeadm: a mapping, since v1beta4 a list of names and values
		w.extraArgs(kubesettings.Kubelet, value, path)
	case key == "kubelet-arg" || key == "kubelet-arg+": // RKE2 and k3s
		w.equations(kubesettings.Kubelet, value, path)
	case key == "kube-proxy-arg" || key == "kube-proxy-arg+":
		w.equations(kubesettings.KubeProxy, value, path)
	case key == "values" && len(path) > 1 && strings.HasPrefix(path[len(path)-2], "workerProfiles["): // k0s
		w.r.config(kubesettings.Kubelet, value, ConfigFile, w.at(value, path))
	default:
		return false
	}
	return true
}

func (w *walk) extraArgs(p kubesettings.Program, n *yaml.Node, path []string) {
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			w.r.flag(p, documents.Text(item, "name"), documents.Text(item, "value"), CommandLine, w.at(item, path), false)
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		w.r.flag(p, name.Value, n.Content[i+1].Value, CommandLine, w.at(name, append(slices.Clip(path), name.Value)), false)
	}
}

// equations reads NAME=VALUE, or a list of such texts.
func (w *walk) equations(p kubesettings.Program, n *yaml.Node, path []string) {
	all := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		all = n.Content
	}
	for _, one := range all {
		name, value, _ := strings.Cut(one.Value, "=")
		w.r.flag(p, strings.TrimLeft(name, "-"), value, CommandLine, w.at(one, path), false)
	}
}

// settingsList reads a list of flags or gates below a key that names their program, as in AKS' kubeclusterconfig.json,
// and reports whether it was one.
func (w *walk) settingsList(n *yaml.Node, path []string) bool {
	program := lastProgram(strings.Join(path, " "))
	if program == "" || len(n.Content) == 0 || len(path) == 0 {
		return false
	}
	last := strings.ToLower(path[len(path)-1])
	gates := strings.Contains(last, "featuregates")
	var args []string
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode || !gates && !strings.HasPrefix(item.Value, "--") {
			return false
		}
		args = append(args, item.Value)
	}
	if gates {
		for _, item := range n.Content {
			w.r.flag(program, "feature-gates", item.Value, CommandLine, w.at(item, path), false)
		}
		return true
	}
	w.r.arguments(program, args, func(i int) Place { return w.at(n.Content[i], path) }, false)
	return true
}

// scalar reads a text inside an object: a configuration file, or a script.
func (w *walk) scalar(n *yaml.Node, path []string) {
	content := n.Value
	if !strings.Contains(content, "\n") && !strings.Contains(content, "--") {
		return
	}
	lower := strings.ToLower(content)
	if !strings.Contains(lower, "kubelet") && !strings.Contains(lower, "kube-proxy") && !strings.Contains(lower, "kubeproxy") {
		return
	}
	place := w.at(n, path)
	if w.place.File != "" && (n.Style&(yaml.LiteralStyle|yaml.FoldedStyle)) != 0 {
		place.Line++ // the text begins below its key
	}
	for _, p := range []kubesettings.Program{kubesettings.Kubelet, kubesettings.KubeProxy} {
		if strings.Contains(content, "kind: "+p.Kind()) {
			w.inner(p, content, place)
			return
		}
	}
	w.r.Script(content, place)
}

// inner reads a configuration file that is a text in an object.
func (w *walk) inner(p kubesettings.Program, content string, place Place) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(content), &document); err != nil || len(document.Content) == 0 {
		w.r.unread(place, fmt.Sprintf("is not YAML, so only gates in its text were looked for: %v", err))
		w.r.Script(content, place)
		return
	}
	first := len(w.r.Settings)
	w.r.configAt(p, w.r.expanded(&document, place), ConfigFile, place, max(place.Line-1, 0))
	if w.configMap == "" || p != kubesettings.KubeProxy {
		return
	}
	for i := range w.r.Settings[first:] { // only a Windows kube-proxy refuses the modes of Linux: see rules_fields.go
		w.r.Settings[first+i].configMap = w.configMap
	}
}

// config reads a configuration file.
func (r *Reader) config(p kubesettings.Program, n *yaml.Node, form Form, place Place) {
	r.configAt(p, n, form, place, 0)
}

// configAt is config for a text that begins below the line offset of its file.
func (r *Reader) configAt(p kubesettings.Program, n *yaml.Node, form Form, place Place, offset int) {
	c := configuration{r: r, program: p, form: form, place: place, offset: offset}
	c.fields(n, "", 0)
}

type configuration struct {
	r       *Reader
	program kubesettings.Program
	form    Form
	place   Place
	offset  int
}

func (c *configuration) at(n *yaml.Node) Place {
	p := c.place
	if p.File != "" {
		p.Line = n.Line + c.offset
	}
	return p
}

func (c *configuration) fields(n *yaml.Node, parent string, depth int) {
	if n.Kind != yaml.MappingNode || depth > deepest {
		return
	}
	for i := 0; i+1 < len(n.Content) && !c.r.isFull(c.place); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		path := strings.TrimPrefix(parent+"."+key.Value, ".")
		if path == "apiVersion" || path == "kind" || path == "metadata" || path == "metadata.creationTimestamp" {
			continue
		}
		if path == "featureGates" {
			c.gates(value)
			continue
		}
		c.field(path, key, value)
		switch {
		case value.Kind == yaml.MappingNode && c.r.table.HasFields(c.program, path):
			c.fields(value, path, depth+1)
		case value.Kind == yaml.SequenceNode && c.r.table.HasFields(c.program, path):
			for _, item := range value.Content {
				c.fields(item, path+"[]", depth+1)
			}
		}
	}
}

func (c *configuration) field(path string, key, value *yaml.Node) {
	s := Setting{Program: c.program, Kind: FieldSetting, Name: path, Form: c.form, Place: c.at(key)}
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag != "!!null":
		s.Value = value.Value
	case value.Kind == yaml.ScalarNode:
		s.Empty = true
	default:
		s.Empty = len(value.Content) == 0
	}
	c.r.add(s)
}

func (c *configuration) gates(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		c.r.add(Setting{Program: c.program, Kind: GateSetting, Name: n.Content[i].Value, Value: n.Content[i+1].Value, Form: c.form,
			Place: c.at(n.Content[i])})
	}
}

// Config reads the text of a configuration file whose kind is known, of a Windows node or of an object.
func (r *Reader) Config(p kubesettings.Program, content []byte, form Form, place Place) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		r.unread(place, fmt.Sprintf("is not YAML: %v", err))
		return
	}
	if len(document.Content) == 0 {
		return
	}
	first := len(r.Settings)
	r.config(p, r.expanded(&document, place), form, place)
	if place.Object == "" {
		r.ofWindows(first)
	}
}
