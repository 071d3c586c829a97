package netpol

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/proof/policy"
)

const (
	// DefaultPods is the number of pods of the standard model.
	DefaultPods = 9
	// MinPods is the smallest number of pods with which the standard cases make sense.
	MinPods = 6
	// MaxPods bounds the number of pods.
	MaxPods = 60
	// metadataName is the label that the API server puts on each namespace.
	metadataName = corev1.LabelMetadataName
)

// Model has the pods of a table and their ports.
type Model struct {
	Namespaces []Namespace
	Pods       []Pod
	Ports      []Port // of each pod
}

// Namespace is a namespace of a model.
type Namespace struct {
	Name   string
	Labels map[string]string
	Real   string // its name in the cluster; "" if there is no cluster
	Host   bool   // its pods use the network of their nodes
}

// Pod is a pod of a model.
type Pod struct {
	Namespace string // the name of its namespace in the model
	Short     string // its name in the namespace
	Labels    map[string]string
	Node      string // "" if there is no cluster
	System    string // of the node: linux or windows
	Address   netip.Addr
	// Host reports whether the pod uses the network of its node, so that it stands for the node.
	Host bool
}

// Name returns the pod's name in tables.
func (p Pod) Name() string { return p.Namespace + "/" + p.Short }

// Port is a port that each pod serves.
type Port struct {
	Number   int32
	Protocol corev1.Protocol
	Name     string // of the container port
	Named    bool   // policies know the port by its name, and the number is invented
}

// String returns the port as in TCP/80 or TCP/metrics.
func (p Port) String() string {
	if p.Named {
		return string(p.Protocol) + "/" + p.Name
	}
	return fmt.Sprintf("%s/%d", p.Protocol, p.Number)
}

// Standard returns the model of the standard cases: pods a, b, c and so on in the namespaces x, y and z.
// Each pod has the label pod, each namespace the label ns.
func Standard(pods int, protocols ...corev1.Protocol) (Model, error) {
	if pods < MinPods || pods > MaxPods {
		return Model{}, fmt.Errorf("%d: write a number of pods from %d to %d", pods, MinPods, MaxPods)
	}
	m := Model{}
	for _, name := range []string{"x", "y", "z"} {
		m.Namespaces = append(m.Namespaces, Namespace{Name: name, Labels: map[string]string{"ns": name, metadataName: name}})
	}
	for i := range pods {
		short := string(rune('a' + i/3))
		m.Pods = append(m.Pods, Pod{Namespace: m.Namespaces[i%3].Name, Short: short, Labels: map[string]string{"pod": short}})
	}
	slices.SortStableFunc(m.Pods, func(a, b Pod) int { return int(a.Namespace[0]) - int(b.Namespace[0]) })
	for _, protocol := range protocols {
		for _, number := range []int32{8080, 8081} {
			m.Ports = append(m.Ports, Port{Number: number, Protocol: protocol, Name: portName(protocol, number)})
		}
	}
	return m, nil
}

func portName(protocol corev1.Protocol, number int32) string {
	words := map[corev1.Protocol]string{corev1.ProtocolTCP: "tcp", corev1.ProtocolUDP: "udp", corev1.ProtocolSCTP: "sctp"}
	return fmt.Sprintf("%s-%d", words[protocol], number)
}

// withAddresses returns the model with addresses for pods that have none, as a pod network would give them.
func (m Model) withAddresses() Model {
	m.Pods = slices.Clone(m.Pods)
	for i := range m.Pods {
		if !m.Pods[i].Address.IsValid() {
			m.Pods[i].Address = netip.AddrFrom4([4]byte{10, 244, byte(i % 2), byte(i + 2)})
		}
	}
	return m
}

func (m Model) namespace(name string) (Namespace, bool) {
	i := slices.IndexFunc(m.Namespaces, func(n Namespace) bool { return n.Name == name })
	if i < 0 {
		return Namespace{}, false
	}
	return m.Namespaces[i], true
}

// ends returns the pods as package policy sees them. The pods of a cluster have the names of its
// namespaces.
func (m Model) ends() []policy.Pod {
	all := make([]policy.Pod, len(m.Pods))
	for i, p := range m.Pods {
		n, _ := m.namespace(p.Namespace)
		all[i] = policy.Pod{Namespace: n.Name, Name: p.Short, Labels: p.Labels, NamespaceLabels: n.Labels,
			Address: p.Address, Node: p.Node, Host: p.Host}
		if n.Real != "" {
			all[i].Namespace = n.Real
		}
		for _, port := range m.Ports {
			all[i].Ports = append(all[i].Ports, policy.Port{Name: port.Name, Number: port.Number, Protocol: port.Protocol})
		}
	}
	return all
}
