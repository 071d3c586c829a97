package netpol

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/proof/policy"
	"github.com/swdt-dev/swdt/internal/ui"
)

//go:embed cases.yaml
var standardCases []byte

// Before is the name of the case without policies, in which all pods must reach each other.
const Before = "before"

// Case is a set of policies that exist at the same time.
type Case struct {
	Name     string
	Proves   string // one sentence; "" for the policies of a user
	Policies []networkingv1.NetworkPolicy
	LeftOut  []LeftOut // policies of other kinds beside them
}

// Cases returns the standard cases, for the standard model.
func Cases() ([]Case, error) {
	var all []struct {
		Name, Proves string
		Policies     []struct {
			Name, Namespace string
			Spec            networkingv1.NetworkPolicySpec
		}
	}
	if err := yaml.UnmarshalStrict(standardCases, &all); err != nil {
		return nil, fmt.Errorf("read the standard cases: %w", err)
	}
	cases := make([]Case, len(all))
	for i, c := range all {
		cases[i] = Case{Name: c.Name, Proves: c.Proves}
		for _, p := range c.Policies {
			cases[i].Policies = append(cases[i].Policies, networkingv1.NetworkPolicy{
				TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
				ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}, Spec: p.Spec})
		}
	}
	return cases, nil
}

// List is the standard cases.
type List struct {
	Cases []ListedCase `json:"cases"`
}

// ListedCase is a standard case.
type ListedCase struct {
	Name     string   `json:"name"`
	Proves   string   `json:"proves"`
	Policies []string `json:"policies"` // as NAMESPACE/NAME
	// Manifest has the policies as YAML. An address such as pod:x/a stands for that of the pod.
	Manifest string `json:"manifest"`
}

// NewList returns the list of cases.
func NewList(cases []Case) (List, error) {
	l := List{Cases: []ListedCase{}}
	for _, c := range cases {
		var documents []string
		for _, p := range c.Policies {
			text, err := yaml.Marshal(p)
			if err != nil {
				return l, err
			}
			documents = append(documents, string(text))
		}
		l.Cases = append(l.Cases, ListedCase{Name: c.Name, Proves: c.Proves, Policies: c.policyNames(),
			Manifest: strings.Join(documents, "---\n")})
	}
	return l, nil
}

// Names returns the cases for -o name.
func (l List) Names() []string {
	names := []string{}
	for _, c := range l.Cases {
		names = append(names, "case/"+c.Name)
	}
	return names
}

// WriteText writes a line for each case.
func (l List) WriteText(page *ui.Page) error {
	var rows [][]string
	for _, c := range l.Cases {
		row := []string{c.Name, c.Proves}
		if page.Wide {
			row = append(row, strings.Join(c.Policies, ", "))
		}
		rows = append(rows, row)
	}
	return ui.Table(page, ListColumns(page.Wide), rows)
}

// ListColumns returns the columns of the table of a List. If wide is true, they are those of -o wide.
func ListColumns(wide bool) []string {
	header := []string{"CASE", "PROVES"}
	if wide {
		header = append(header, "POLICIES")
	}
	return header
}

// policyNames returns the names of the policies, as NAMESPACE/NAME.
func (c Case) policyNames() []string {
	names := []string{}
	for _, p := range c.Policies {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}

// hasBlock reports whether a policy decides by addresses.
func (c Case) hasBlock() bool {
	is := func(p networkingv1.NetworkPolicyPeer) bool { return p.IPBlock != nil }
	return slices.ContainsFunc(c.Policies, func(p networkingv1.NetworkPolicy) bool {
		return slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
			return slices.ContainsFunc(r.From, is)
		}) || slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
			return slices.ContainsFunc(r.To, is)
		})
	})
}

// realized returns the policies for the model: with the names of its namespaces in the cluster, if it has
// one, and with the addresses of its pods.
func (m Model) realized(policies []networkingv1.NetworkPolicy) ([]networkingv1.NetworkPolicy, error) {
	all := make([]networkingv1.NetworkPolicy, len(policies))
	for i := range policies {
		p := policies[i].DeepCopy()
		n, ok := m.namespace(p.Namespace)
		if !ok {
			return nil, fmt.Errorf("NetworkPolicy %s/%s: the model has no namespace %s", p.Namespace, p.Name, p.Namespace)
		}
		if n.Real != "" {
			p.Namespace = n.Real
		}
		var peers []*networkingv1.NetworkPolicyPeer
		for r := range p.Spec.Ingress {
			for j := range p.Spec.Ingress[r].From {
				peers = append(peers, &p.Spec.Ingress[r].From[j])
			}
		}
		for r := range p.Spec.Egress {
			for j := range p.Spec.Egress[r].To {
				peers = append(peers, &p.Spec.Egress[r].To[j])
			}
		}
		for _, peer := range peers {
			m.realizePeer(peer)
		}
		all[i] = *p
	}
	_, err := policy.New(all)
	return all, err
}

func (m Model) realizePeer(peer *networkingv1.NetworkPolicyPeer) {
	if s := peer.NamespaceSelector; s != nil {
		if name, ok := s.MatchLabels[metadataName]; ok {
			s.MatchLabels[metadataName] = m.realName(name)
		}
		for i, e := range s.MatchExpressions {
			for j := range e.Values {
				if e.Key == metadataName {
					s.MatchExpressions[i].Values[j] = m.realName(e.Values[j])
				}
			}
		}
	}
	if b := peer.IPBlock; b != nil {
		b.CIDR = m.block(b.CIDR)
		for i := range b.Except {
			b.Except[i] = m.block(b.Except[i])
		}
	}
}

func (m Model) realName(name string) string {
	if n, ok := m.namespace(name); ok && n.Real != "" {
		return n.Real
	}
	return name
}

// block returns the range of addresses that stands for "pod:NAMESPACE/POD", and any other text as it is.
func (m Model) block(text string) string {
	name, ok := strings.CutPrefix(text, "pod:")
	i := slices.IndexFunc(m.Pods, func(p Pod) bool { return p.Name() == name })
	if !ok || i < 0 {
		return text
	}
	a := m.Pods[i].Address
	return fmt.Sprintf("%s/%d", a, a.BitLen())
}
