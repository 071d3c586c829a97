package lint

import corev1 "k8s.io/api/core/v1"

// manifests has the objects around the one that a rule looks at.
type manifests struct {
	namespaces map[string]*object
	labelled   map[label][]*pods // the pods for Windows that have a label
	windows    map[about]bool    // the objects whose pods are for Windows
	nodes      []*corev1.Node    // of Windows
	hasWindows map[string]bool   // the namespaces with pods for Windows
	// credentialSpecs are the names of all GMSACredentialSpec.
	credentialSpecs map[string]bool
	networks        []string // the pod networks, by what their DaemonSets are called
}

// about names an object.
type about struct{ kind, namespace, name string }

// label is a label of pods in a namespace.
type label struct{ namespace, key, value string }

// newManifests returns the manifests of all objects. The systems of their pods must be known.
func newManifests(all []*object) *manifests {
	m := &manifests{namespaces: namespacesOf(all), labelled: map[label][]*pods{}, hasWindows: map[string]bool{}, windows: map[about]bool{}, credentialSpecs: map[string]bool{}}
	for _, o := range all {
		m.addNode(o)
		m.addNetwork(o)
		if o.kind == "GMSACredentialSpec" {
			m.credentialSpecs[o.name] = true
		}
		if o.pods == nil || o.pods.system.name != corev1.Windows {
			continue
		}
		m.hasWindows[o.namespace] = true
		m.windows[about{o.kind, o.namespace, o.name}] = true
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

// selected returns the pods for Windows that labels select.
func (m *manifests) selected(namespace string, selector map[string]string) (all []*pods) {
	var fewest []*pods
	first := true
	for key, value := range selector {
		if all := m.labelled[label{namespace, key, value}]; first || len(all) < len(fewest) {
			fewest, first = all, false
		}
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
