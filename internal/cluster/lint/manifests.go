package lint

import corev1 "k8s.io/api/core/v1"

// manifests has the objects around the one that a rule looks at.
type manifests struct {
	namespaces map[string]*object
	labelled   map[label][]*pods // the pods for Windows that have a label
}

// label is a label of pods in a namespace.
type label struct{ namespace, key, value string }

// newManifests returns the manifests of all objects. The systems of their pods must be known.
func newManifests(all []*object) *manifests {
	m := &manifests{namespaces: namespacesOf(all), labelled: map[label][]*pods{}}
	for _, o := range all {
		if o.pods == nil || o.pods.system.name != corev1.Windows {
			continue
		}
		for key, value := range o.pods.labels() {
			is := label{o.namespace, key, value}
			m.labelled[is] = append(m.labelled[is], o.pods)
		}
	}
	return m
}

// selectWindows reports whether labels select pods for Windows.
func (m *manifests) selectWindows(namespace string, selector map[string]string) bool {
	var fewest []*pods
	first := true
	for key, value := range selector {
		if all := m.labelled[label{namespace, key, value}]; first || len(all) < len(fewest) {
			fewest, first = all, false
		}
	}
	for _, p := range fewest {
		if p.matches(selector) {
			return true
		}
	}
	return false
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
