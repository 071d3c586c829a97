package netpol

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// LeftOut is a policy of another kind than NetworkPolicy. It takes part in what a cluster does, and swdt does not know its
// meaning.
type LeftOut struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"` // "" if the policy is of the whole cluster
	Name       string `json:"name"`
}

// String returns KIND NAMESPACE/NAME of APIVERSION.
func (l LeftOut) String() string {
	name := l.Name
	if l.Namespace != "" {
		name = l.Namespace + "/" + name
	}
	return strings.TrimRight(l.Kind+" "+name, " ") + " of " + l.APIVersion
}

// leftOutSentence says which policies a verdict does not consider; "" if it considers all.
func leftOutSentence(all []LeftOut) string {
	if len(all) == 0 {
		return ""
	}
	const most = 5
	var names []string
	for _, l := range all[:min(len(all), most)] {
		names = append(names, l.String())
	}
	text := strings.Join(names, ", ")
	if len(all) > most {
		text += fmt.Sprintf(" and %d more", len(all)-most)
	}
	return plural(len(all), "policy") + " of other kinds left out, so the cluster may do something else: " + text
}

// found has the policies of a file.
type found struct {
	policies []networkingv1.NetworkPolicy
	others   []LeftOut
}

// noneError says that a file has no NetworkPolicy.
func (f *found) noneError(path string) error {
	if len(f.others) == 0 {
		return fmt.Errorf("%s has no NetworkPolicy of networking.k8s.io/v1", path)
	}
	var kinds []string
	for _, l := range f.others {
		kinds = append(kinds, l.Kind+" of "+l.APIVersion)
	}
	slices.Sort(kinds)
	of := "another kind"
	if len(f.others) > 1 {
		of = "other kinds"
	}
	return fmt.Errorf("%s has no NetworkPolicy of networking.k8s.io/v1, and %s of %s, which swdt does not judge: %s", path,
		plural(len(f.others), "policy"), of, strings.Join(slices.Compact(kinds), ", "))
}

// add adds the policies of a document: itself, or the items of a list. An item of a list that an API server sent has no
// kind of its own, and gets that of within.
func (f *found) add(document []byte, within metav1.TypeMeta) error {
	var object struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct{ Name, Namespace string }
		Items           []json.RawMessage `json:"items"`
	}
	if err := yaml.Unmarshal(document, &object); err != nil {
		return err
	}
	if object.Kind == "" {
		object.TypeMeta = within
	}
	if single, isList := strings.CutSuffix(object.Kind, "List"); isList {
		return f.addItems(object.Items, metav1.TypeMeta{APIVersion: object.APIVersion, Kind: single})
	}
	switch {
	case object.Kind == "NetworkPolicy" && object.APIVersion == "networking.k8s.io/v1":
		return f.addPolicy(document)
	case isPolicy(object.TypeMeta):
		f.others = append(f.others, LeftOut{APIVersion: object.APIVersion, Kind: object.Kind,
			Namespace: object.Metadata.Namespace, Name: object.Metadata.Name})
	}
	return nil
}

func (f *found) addItems(items []json.RawMessage, within metav1.TypeMeta) error {
	for i, item := range items {
		err := f.add(item, within)
		var unknown *unknownField
		if errors.As(err, &unknown) {
			return &unknownField{fmt.Sprintf("items[%d].%s", i, unknown.path)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *found) addPolicy(document []byte) error {
	var p networkingv1.NetworkPolicy
	if err := decodeStrict(document, &p, "status", "metadata.clusterName"); err != nil {
		return err
	}
	if p.Namespace == "" {
		p.Namespace = metav1.NamespaceDefault
	}
	p.TypeMeta = metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}
	p.ObjectMeta = metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, Labels: p.Labels}
	f.policies = append(f.policies, p)
	return nil
}

// isPolicy reports whether objects of a kind decide which traffic passes: those of Calico, Cilium, Antrea, the Network
// Policy API, OVN-Kubernetes and OpenShift, and Kubernetes' own before networking.k8s.io/v1.
func isPolicy(t metav1.TypeMeta) bool {
	if strings.HasPrefix(t.Kind, "Staged") { // of Calico, which only previews them
		return false
	}
	return strings.HasSuffix(t.Kind, "NetworkPolicy") ||
		slices.Contains([]string{"EgressFirewall", "AuthorizationPolicy", "ServerAuthorization"}, t.Kind)
}
