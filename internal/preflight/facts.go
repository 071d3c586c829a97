package preflight

import (
	"cmp"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/host"
)

// facts are all that the checks look at.
type facts struct {
	spec      v1alpha1.Kubernetes
	own       Own
	mayReboot bool
	kubelet   string // version of the program; empty: unknown
	kubeadm   string
	node      *nodeFacts    // nil: not looked at
	cluster   *clusterFacts // nil: not looked at
}

// known is a fact, or why it is not known.
type known[T any] struct {
	value T
	err   error
}

func learn[T any](value T, err error) known[T] { return known[T]{value, err} }

type nodeFacts struct {
	machine host.Facts
	clock   clock // the node's, against ours

	features  known[map[string]host.FeatureState] // those that this Windows has
	services  known[map[string]service]           // by lower-case name
	processes known[map[uint32]host.Process]
	listeners known[[]listener]
	files     known[[]string] // those of leftovers() that exist
	defender  known[defender]
	runtime   known[string] // who answers CRI on containerd's pipe; ErrNotExist: nobody
	uuid      string        // of the machine, as kubelet reports it; empty: unknown
	targets   []reached
}

// clock is how much one clock is ahead of ours, give or take.
type clock struct {
	ahead, giveOrTake time.Duration
}

type service struct {
	name, state, commandLine string
	pid                      uint32
}

func (s service) running() bool { return s.state != "" && s.state != string(host.Stopped) }

type listener struct {
	address, process, image string
	port                    uint16
	pid                     uint32
}

// defender is Microsoft Defender's real-time protection.
type defender struct {
	protects   bool
	exclusions []string // paths and processes
}

// target is an address of the API server that the node has to reach.
type target struct {
	what    string // whose address it is
	address string // host:port
	planned string // the address that the hosts file is going to have for it; empty: none
}

// reached is what the node makes of a target.
type reached struct {
	target
	addresses known[[]string] // of the name; unset where none has to be resolved
	reach     known[host.Reach]
}

func (t target) host() string {
	name, _, _ := net.SplitHostPort(t.address)
	return name
}

type clusterFacts struct {
	server        string // URL
	version       known[string]
	clock         known[clock]
	missing       known[[]cluster.Permission]
	info          known[cluster.ClusterInfo]
	kubeletConfig known[cluster.KubeletConfig]
	cni           known[cluster.CNI]
	namesake      known[cluster.Node]
}

// nodeName is what the Node object is going to be called; kubelet makes a host
// name lower case. Empty where it cannot be known without the node.
func (f *facts) nodeName() string {
	if f.spec.Join.NodeName != "" || f.node == nil {
		return f.spec.Join.NodeName
	}
	return strings.ToLower(strings.TrimSpace(f.node.machine.Hostname))
}

// targets are the addresses of the API server that the node has to reach: that
// which it is told, and that which cluster-info has, with which kubeadm and
// kubelet go on.
func (f *facts) targets() []target {
	var all []target
	add := func(what, address string) {
		if address == "" || len(all) > 0 && all[0].address == address {
			return
		}
		t := target{what: what, address: address}
		if alias := f.spec.Join.ControlPlaneAlias; alias != nil && strings.EqualFold(alias.Name, t.host()) {
			t.planned = alias.IP
		}
		all = append(all, t)
	}
	if endpoint := f.spec.Join.ControlPlaneEndpoint; endpoint != "" {
		add("spec.kubernetes.join.controlPlaneEndpoint", withPort(endpoint))
	} else if f.cluster != nil {
		add("the kubeconfig's server", address(f.cluster.server))
	}
	if f.cluster != nil {
		add("the server in ConfigMap kube-public/cluster-info", address(f.cluster.info.value.Server))
	}
	return all
}

// withPort adds the port that kubeadm means where there is none.
func withPort(endpoint string) string {
	if _, _, err := net.SplitHostPort(endpoint); err == nil {
		return endpoint
	}
	return net.JoinHostPort(strings.Trim(endpoint, "[]"), "6443")
}

// address is the host:port of a URL; empty where it is none.
func address(server string) string {
	if server == "" {
		return ""
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return withPort(server)
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
}
