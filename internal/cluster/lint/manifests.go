package lint

import (
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// manifests has the objects around the one that a rule looks at.
type manifests struct {
	namespaces map[string]*object
	labelled   map[label][]*pods // the pods for Windows that have a label
	windows    map[about]*object // the objects whose pods are for Windows
	nodes      []*corev1.Node    // of Windows
	hasWindows map[string]bool   // the namespaces with pods for Windows
	// credentialSpecs are the names of all GMSACredentialSpec.
	credentialSpecs map[string]bool
	selections      map[string][]*pods            // of namespaces and selectors
	left            int                           // comparisons; see spend
	classes         map[string]*nodev1.Scheduling // of RuntimeClasses
	networks        []string                      // the pod networks, by what their DaemonSets are called
}

// about names an object.
type about struct{ kind, namespace, name string }

// label is a label of pods in a namespace.
type label struct{ namespace, key, value string }

// newManifests returns the manifests of all objects. The systems of their pods must be known.
func newManifests(all []*object) *manifests {
	m := &manifests{namespaces: namespacesOf(all), labelled: map[label][]*pods{}, selections: map[string][]*pods{}, left: mostCompared, classes: map[string]*nodev1.Scheduling{}, hasWindows: map[string]bool{}, windows: map[about]*object{}, credentialSpecs: map[string]bool{}}
	for _, o := range all {
		m.addNode(o)
		m.addClass(o)
		m.addNetwork(o)
		if o.kind == "GMSACredentialSpec" {
			m.credentialSpecs[o.name] = true
		}
		if o.pods == nil || o.pods.system.name != corev1.Windows {
			continue
		}
		m.hasWindows[o.namespace] = true
		m.windows[about{o.kind, o.namespace, o.name}] = o
		for key, value := range o.pods.labels() {
			is := label{o.namespace, key, value}
			m.labelled[is] = append(m.labelled[is], o.pods)
		}
	}
	return m
}

// addNode adds a node of Windows.
func (m *manifests) addNode(o *object) {
	if o.kind != "Node" || o.group != "" {
		return
	}
	var n corev1.Node
	if o.decode(nil, &n) == nil && n.Labels[corev1.LabelOSStable] == string(corev1.Windows) {
		m.nodes = append(m.nodes, &n)
	}
}

// addClass adds a RuntimeClass.
func (m *manifests) addClass(o *object) {
	var class nodev1.RuntimeClass
	if o.kind == "RuntimeClass" && o.decode(nil, &class) == nil && class.Scheduling != nil {
		m.classes[o.name] = class.Scheduling
	}
}

// addNetwork adds a pod network.
func (m *manifests) addNetwork(o *object) {
	if o.kind == "DaemonSet" {
		m.networks = append(m.networks, o.name)
	}
}

// selectWindows reports whether labels select pods for Windows.
func (m *manifests) selectWindows(namespace string, selector map[string]string) bool {
	return len(m.selected(namespace, selector)) > 0
}

// mostCompared bounds the comparisons of objects with others, since the number of pairs grows with the square of a text.
const mostCompared = 3_000_000

// spend reports whether n more comparisons may be made.
func (m *manifests) spend(n int) bool {
	m.left -= n
	return m.left >= 0
}

// selected returns the pods for Windows that labels select.
func (m *manifests) selected(namespace string, selector map[string]string) []*pods {
	key := namespace + "\x00" + labels.Set(selector).String()
	if all, known := m.selections[key]; known {
		return all
	}
	all := m.matching(namespace, selector)
	m.selections[key] = all
	return all
}

func (m *manifests) matching(namespace string, selector map[string]string) (all []*pods) {
	var fewest []*pods
	first := true
	for key, value := range selector {
		if all := m.labelled[label{namespace, key, value}]; first || len(all) < len(fewest) {
			fewest, first = all, false
		}
	}
	if !m.spend(len(fewest)) {
		return nil
	}
	for _, p := range fewest {
		if p.matches(selector) {
			all = append(all, p)
		}
	}
	return all
}

// matches reports whether the pods have all labels of a selector.
func (p *pods) matches(selector map[string]string) bool {
	for key, value := range selector {
		if p.labels()[key] != value {
			return false
		}
	}
	return true
}

// labels returns the labels of the pods.
func (p *pods) labels() map[string]string { return p.meta.Labels }
