package netpol

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	// maxPorts bounds the ports of a derived model.
	maxPorts = 24
	// otherName is the name of a pod without labels, and of the namespace that no policy names.
	otherName, elsewhere = "other", "elsewhere"
	// maxShort bounds a derived name, in bytes.
	maxShort = 24
	// firstNamed is the number of the first port that only has a name.
	firstNamed = 20001
)

// Derive returns a model that shows what policies mean. It has the namespaces that they name or select, and
// one more, which has pods with the labels of all peers; in each namespace a pod for each selector that matches
// there, and one without labels; and the ports that they name, and one more of each protocol.
func Derive(policies []networkingv1.NetworkPolicy, maxPods int) (Model, error) {
	d := &deriver{}
	for _, p := range policies {
		d.add(p.Namespace, map[string]string{metadataName: p.Namespace})
	}
	peers := peersOf(policies)
	for _, p := range peers {
		d.addSelected(p.NamespaceSelector)
	}
	d.add(elsewhere, map[string]string{metadataName: elsewhere})
	for _, p := range policies {
		d.addPod(p.Namespace, &p.Spec.PodSelector)
	}
	for _, p := range peers {
		if p.IPBlock == nil {
			d.addPeer(p)
			d.addPod(elsewhere, p.PodSelector) // the same labels where the policy may not mean them
		}
	}
	for _, n := range d.Namespaces {
		d.addPod(n.Name, nil)
	}
	slices.SortStableFunc(d.Pods, func(a, b Pod) int { return d.place(a.Namespace) - d.place(b.Namespace) })
	if len(d.Pods) > min(maxPods, MaxPods) {
		return d.Model, fmt.Errorf("the policies need %d pods, and at most %d are allowed; name fewer policies", len(d.Pods),
			min(maxPods, MaxPods))
	}
	return d.Model, d.addPorts(policies)
}

// peerIn is a peer in the rule of a policy of a namespace.
type peerIn struct {
	networkingv1.NetworkPolicyPeer
	namespace string
}

func peersOf(policies []networkingv1.NetworkPolicy) (all []peerIn) {
	for _, p := range policies {
		for _, r := range p.Spec.Ingress {
			for _, peer := range r.From {
				all = append(all, peerIn{peer, p.Namespace})
			}
		}
		for _, r := range p.Spec.Egress {
			for _, peer := range r.To {
				all = append(all, peerIn{peer, p.Namespace})
			}
		}
	}
	return all
}

// deriver derives a model.
type deriver struct{ Model }

func (d *deriver) place(namespace string) int {
	return slices.IndexFunc(d.Namespaces, func(n Namespace) bool { return n.Name == namespace })
}

func (d *deriver) add(name string, all map[string]string) {
	if d.place(name) < 0 {
		d.Namespaces = append(d.Namespaces, Namespace{Name: name, Labels: all})
	}
}

// addSelected adds a namespace that a selector matches, unless there is one.
func (d *deriver) addSelected(s *metav1.LabelSelector) {
	if s == nil || slices.ContainsFunc(d.Namespaces, func(n Namespace) bool { return matches(s, n.Labels) }) {
		return
	}
	wanted := example(s)
	name := wanted[metadataName]
	if name == "" {
		name = d.unique(nameOf(wanted), func(name string) bool { return d.place(name) >= 0 })
		wanted[metadataName] = name
	}
	if matches(s, wanted) {
		d.add(name, wanted)
	}
}

// addPeer adds pods that a peer selects, in each namespace that it selects.
func (d *deriver) addPeer(p peerIn) {
	for _, n := range d.Namespaces {
		if p.NamespaceSelector == nil && n.Name == p.namespace ||
			p.NamespaceSelector != nil && matches(p.NamespaceSelector, n.Labels) {
			d.addPod(n.Name, p.PodSelector)
		}
	}
}

// addPod adds a pod that a selector matches, unless the namespace has one with these labels.
func (d *deriver) addPod(namespace string, s *metav1.LabelSelector) {
	wanted := map[string]string{}
	if s != nil {
		if wanted = example(s); !matches(s, wanted) { // no pod has these labels
			return
		}
	}
	if slices.ContainsFunc(d.Pods, func(p Pod) bool { return p.Namespace == namespace && maps.Equal(p.Labels, wanted) }) {
		return
	}
	name := d.unique(nameOf(wanted), func(name string) bool {
		return slices.ContainsFunc(d.Pods, func(p Pod) bool { return p.Namespace == namespace && p.Short == name })
	})
	d.Pods = append(d.Pods, Pod{Namespace: namespace, Short: name, Labels: wanted})
}

func (d *deriver) unique(base string, taken func(string) bool) string {
	name := base
	for i := 2; taken(name); i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	return name
}

func matches(s *metav1.LabelSelector, all map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(all))
}

// example returns labels that a selector matches, if there are any.
func example(s *metav1.LabelSelector) map[string]string {
	all := map[string]string{}
	for _, e := range s.MatchExpressions {
		switch {
		case e.Operator == metav1.LabelSelectorOpExists:
			all[e.Key] = otherName
		case e.Operator == metav1.LabelSelectorOpIn && len(e.Values) > 0:
			all[e.Key] = e.Values[0]
		}
	}
	maps.Copy(all, s.MatchLabels)
	return all
}

// nameOf returns a name for a pod or namespace with labels: their values.
func nameOf(all map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if key != metadataName {
			words = append(words, all[key])
		}
	}
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(strings.Join(words, "-"))), "-")
	if name = strings.Trim(name[:min(len(name), maxShort)], "-"); name == "" {
		return otherName
	}
	return name
}

// addPorts adds the ports that the policies name, and one more of each protocol. If policies name no port,
// there is one of TCP and one of UDP.
func (d *deriver) addPorts(policies []networkingv1.NetworkPolicy) error {
	named := portsOf(policies)
	protocols := []corev1.Protocol{corev1.ProtocolTCP}
	for _, p := range named {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		if !slices.Contains(protocols, protocol) {
			protocols = append(protocols, protocol)
		}
		switch {
		case p.Port == nil:
		case p.Port.Type == intstr.String:
			d.addPort(Port{Number: d.free(firstNamed), Protocol: protocol, Name: p.Port.StrVal, Named: true})
		default:
			d.addPort(Port{Number: p.Port.IntVal, Protocol: protocol})
			if p.EndPort != nil {
				d.addPort(Port{Number: *p.EndPort, Protocol: protocol})
			}
		}
	}
	if len(named) == 0 {
		protocols = append(protocols, corev1.ProtocolUDP)
	}
	one := d.free(8080)
	for _, protocol := range protocols {
		d.addPort(Port{Number: one, Protocol: protocol})
	}
	if len(d.Ports) > maxPorts {
		return errors.New("the policies name too many ports; name fewer policies")
	}
	return nil
}

func portsOf(policies []networkingv1.NetworkPolicy) (all []networkingv1.NetworkPolicyPort) {
	for _, p := range policies {
		for _, r := range p.Spec.Ingress {
			all = append(all, r.Ports...)
		}
		for _, r := range p.Spec.Egress {
			all = append(all, r.Ports...)
		}
	}
	return all
}

// addPort adds a port, unless there is one with its name or, if policies know it by its number, with its
// number. A container's ports have different names, also if their protocols differ.
func (d *deriver) addPort(p Port) {
	has := func(name string) bool {
		return slices.ContainsFunc(d.Ports, func(other Port) bool { return other.Name == name })
	}
	same := func(other Port) bool { return other.Protocol == p.Protocol && other.Number == p.Number }
	switch name := portName(p.Protocol, p.Number); {
	case p.Named && has(p.Name), !p.Named && slices.ContainsFunc(d.Ports, same):
		return
	case !p.Named && !has(name):
		p.Name = name
	}
	d.Ports = append(d.Ports, p)
}

// free returns the first number from first on that no port has.
func (d *deriver) free(first int32) int32 {
	for slices.ContainsFunc(d.Ports, func(p Port) bool { return p.Number == first }) {
		first++
	}
	return first
}
