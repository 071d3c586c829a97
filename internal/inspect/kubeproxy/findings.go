package kubeproxy

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Kind is the kind of a difference.
type Kind string

// These are the kinds. Those about load balancers come first.
const (
	Missing     Kind = "missing"     // a Service has backends, and HNS has no load balancer for it
	Stale       Kind = "stale"       // a load balancer is of no Service, or its Service has no backend
	Doubled     Kind = "doubled"     // several load balancers take the same connections, or two endpoints have an address
	Backends    Kind = "backends"    // a load balancer lacks backends, or has others than the Service
	Target      Kind = "target"      // a load balancer leads to another port of its backends
	Flags       Kind = "flags"       // a load balancer has other flags than kube-proxy sets
	SourceVIP   Kind = "sourceVIP"   // a load balancer has another source address
	Conflict    Kind = "conflict"    // two Services claim one address and port
	MixedPorts  Kind = "mixedPorts"  // backends have different ports, which HNS cannot have
	Unready     Kind = "unready"     // kube-proxy uses backends of which none is ready
	NoPorts     Kind = "noPorts"     // a load balancer has no port, which ends some kube-proxies
	Foreign     Kind = "foreign"     // kube-proxy does not make such a load balancer
	StaleRemote Kind = "staleRemote" // a remote endpoint has an address that no Service uses
	RemoteTwin  Kind = "remoteTwin"  // a remote endpoint has the address of a pod of this node
	LostPod     Kind = "lostPod"     // a pod of this node has no endpoint of its own
	Provider    Kind = "provider"    // a remote endpoint leads to another node
	NoNetwork   Kind = "noNetwork"   // HNS has no network of kube-proxy's
	NoProxy     Kind = "noProxy"     // no kube-proxy runs on the node
	Syncing     Kind = "syncing"     // kube-proxy does not finish its synchronization
)

// Kinds returns all kinds in the order above.
func Kinds() []Kind {
	return []Kind{Missing, Stale, Doubled, Backends, Target, Flags, SourceVIP, Conflict, MixedPorts, Unready, NoPorts, Foreign,
		StaleRemote, RemoteTwin, LostPod, Provider, NoNetwork, NoProxy, Syncing}
}

// Words describes a kind.
func (k Kind) Words() string {
	return map[Kind]string{
		Missing: "HNS has no load balancer for a Service with backends", Stale: "HNS has a load balancer that no Service needs",
		Doubled: "HNS has two objects for one address", Backends: "a load balancer has other backends than its Service",
		Target: "a load balancer leads to another port", Flags: "a load balancer has other flags than kube-proxy sets",
		SourceVIP: "a load balancer has another source address", Conflict: "two Services claim one address and port",
		MixedPorts: "the backends of a Service have different ports", Unready: "kube-proxy uses pods that are not ready",
		NoPorts: "a load balancer has no port", Foreign: "nothing shows that kube-proxy made a load balancer",
		StaleRemote: "a remote endpoint has an address that no Service uses",
		RemoteTwin:  "a remote endpoint has the address of a pod of this node", LostPod: "a pod of this node has no endpoint in HNS",
		Provider: "a remote endpoint leads to another node", NoNetwork: "HNS lacks the network of kube-proxy",
		NoProxy: "no kube-proxy runs", Syncing: "kube-proxy does not finish its synchronization",
	}[k]
}

// maxListed bounds the addresses that a finding lists of each sort.
const maxListed = 8

// Finding is a difference between a node's HNS and the Services of the cluster.
type Finding struct {
	finding.Finding
	Kind Kind `json:"kind"`
	// Service, Port and Use are empty if the object is of no Service. Port is the name of the port.
	Service string `json:"service"`
	Port    string `json:"port"`
	Use     Use    `json:"use"`
	// At is the address and port at which connections are taken, or the address of an endpoint.
	At string `json:"at"`
	// Object is the kind of the HNS object, loadbalancer or endpoint; ID is empty if it is missing.
	Object string `json:"object"`
	ID     string `json:"id"`
	// Lacks, Extra and Dead are about the backends of a load balancer: addresses that it lacks, addresses that it should not
	// have, and IDs of endpoints that do not exist. Each has at most 8 elements; the counts are those of all.
	Lacks      []string `json:"lacks"`
	Extra      []string `json:"extra"`
	Dead       []string `json:"dead"`
	LacksCount int      `json:"lacksCount"`
	ExtraCount int      `json:"extraCount"`
	DeadCount  int      `json:"deadCount"`
	Affected   string   `json:"affected"` // the clients that notice it
	Defects    []Defect `json:"defects"`  // known ones that have this form
	mustStay   bool
}

// MustStay reports whether another program made the object, so that a repair must not remove it.
func (f Finding) MustStay() bool { return f.mustStay }

// Key identifies the difference: two looks that find the same have the same key.
func (f Finding) Key() string {
	return fmt.Sprintf("%s %s %s %s %s %s %d %d %d %q %q %q", f.Kind, f.Service, f.Port, f.Use, f.At, f.ID, f.LacksCount, f.ExtraCount,
		f.DeadCount, f.Lacks, f.Extra, f.Dead)
}

// OfNode returns a finding about kube-proxy itself.
func OfNode(kind Kind, remedy, evidence, format string, args ...any) Finding {
	f := newFinding(kind, finding.Error, format, args...)
	f.Evidence, f.Remedy, f.Affected = shown(evidence), remedy, "all clients on this node"
	return f
}

// newFinding returns a finding without evidence. Its text may have parts of HNS's answer, so it is one bounded line.
func newFinding(kind Kind, severity finding.Severity, format string, args ...any) Finding {
	return Finding{Finding: finding.New("", format, args...).As(severity), Kind: kind, Lacks: []string{}, Extra: []string{},
		Dead: []string{}, Defects: []Defect{}}
}

// about sets the Service's port and its front end.
func (f Finding) about(w wanted) Finding {
	f.Service, f.Port, f.Use, f.At, f.Object = w.service.String(), w.name, w.use, w.at.String(), loadBalancer
	return f
}

// of sets the object.
func (f Finding) of(object, id string) Finding {
	f.Object, f.ID = object, shown(id)
	return f
}

const (
	loadBalancer = "loadbalancer"
	endpoint     = "endpoint"
)

// shown returns a text of HNS as one line of bounded length.
func shown(text string) string {
	const most = 80
	text = ui.Printable(text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// listed returns the first addresses as texts.
func listed(all []netip.Addr) []string {
	texts := []string{}
	for _, a := range all[:min(len(all), maxListed)] {
		texts = append(texts, a.String())
	}
	return texts
}

// some joins texts of which there are count.
func some(texts []string, count int) string {
	text := strings.Join(texts, ", ")
	if more := count - len(texts); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// sortFindings sorts the worst first, then by Service and address.
func sortFindings(all []Finding) {
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(a.Severity.Compare(b.Severity), cmp.Compare(a.Service, b.Service), cmp.Compare(a.At, b.At),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
}
