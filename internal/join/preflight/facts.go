package preflight

import (
	"cmp"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/platform"
)

// facts are the inputs of all checks.
type facts struct {
	spec      v1alpha1.Kubernetes
	own       Own
	mayReboot bool
	kubelet   string // version of the program; empty: unknown
	kubeadm   string
	node      *nodeFacts    // nil: the run does not check the node
	cluster   *clusterFacts // nil: the run does not check the cluster
}

// known is a fact, or the reason why it is unknown.
type known[T any] struct {
	value T
	err   error
}

func factOf[T any](value T, err error) known[T] { return known[T]{value, err} }

type nodeFacts struct {
	machine platform.Facts
	clock   Clock         // the node's clock, relative to this machine's clock
	name    known[string] // the result of node.ObjectName

	features  known[map[string]platform.FeatureState] // states by feature name; only features that this Windows has
	services  known[map[string]Service]               // by lower-case name
	processes known[map[uint32]platform.Process]
	listeners known[[]Listener]
	files     known[[]string] // the files of leftovers() that exist
	defender  known[Defender]
	firewall  known[[]FirewallRule]

	changeable known[[]Changeable]

	runtime known[string] // the runtime that answers CRI on containerd's pipe; ErrNotExist: none
	uuid    string        // the machine's UUID in the format that kubelet reports; empty: unknown
	targets []reached
	// addresses are those of the machine's own name that kubelet accepts; none: it has none.
	addresses known[[]string]
}

// Clock is the time by which a clock is ahead of this machine's clock, with the uncertainty
// of that time.
type Clock struct {
	Ahead, GiveOrTake time.Duration
}

// Service is a Windows service. Only the requested services have all fields; all other services
// have the name, the state, the process and the exit code.
type Service struct {
	Name  string `json:"name"`
	State string `json:"state"` // platform.ServiceState
	PID   uint32 `json:"pid,omitempty"`

	CommandLine string `json:"commandLine,omitempty"`
	// Runs is the command line of the program that the service runs behind its wrappers, the program
	// first; empty: unknown, for the reason in Unknown.
	Runs      string `json:"runs,omitempty"`
	Unknown   string `json:"unknown,omitempty"`
	StartType string `json:"startType,omitempty"` // platform.StartType
	// ExitCode is the Win32 error of the last stop, or the service's own exit code.
	ExitCode     uint32   `json:"exitCode,omitempty"`
	Dependencies []string `json:"dependencies,omitempty"`
	// Restarts is the number of restarts in the recovery actions; nil: the machine does not report it. Windows
	// restarts the service for ever if RestartsRepeat is set. If not, the service stays stopped after the next
	// failure, until none has occurred for RestartsReset.
	Restarts       *int `json:"restarts,omitempty"`
	RestartsRepeat bool `json:"restartsRepeat,omitempty"`
	// Reboots is set if one of the recovery actions restarts Windows.
	Reboots       bool          `json:"reboots,omitempty"`
	RestartsReset time.Duration `json:"restartsResetNanoseconds,omitempty"` // 0: never
}

// Line returns the command line of the program that the service runs, behind its wrappers; "": unknown.
func (s Service) Line() string {
	if s.Runs == "" && s.Unknown == "" { // facts that an earlier swdt has saved
		return s.CommandLine
	}
	return s.Runs
}

// Running reports whether the service is in any known state other than stopped.
func (s Service) Running() bool { return s.State != "" && s.State != string(platform.Stopped) }

// Listener is a TCP port that a process listens on.
type Listener struct {
	Address string `json:"address"` // 0.0.0.0:10250
	Port    uint16 `json:"port"`
	PID     uint32 `json:"pid,omitempty"`
	Process string `json:"process,omitempty"` // kubelet.exe
	Image   string `json:"image,omitempty"`
}

// Defender is Microsoft Defender's real-time protection.
type Defender struct {
	Protects   bool     `json:"protects"`
	Exclusions []string `json:"exclusions,omitempty"` // paths and processes
}

// target is an address of the API server that the node has to reach.
type target struct {
	what    string // the address's purpose
	address string // host:port
	planned string // the address that the hosts file will have for the host; empty: none
}

// reached is the result of the node's connection to a target.
type reached struct {
	target
	addresses known[[]string] // the addresses of the host's name; unset if the name need not be resolved
	reach     known[platform.Reach]
}

func (t target) host() string {
	name, _, _ := net.SplitHostPort(t.address)
	return name
}

type clusterFacts struct {
	server        string // URL
	version       known[string]
	clock         known[Clock]
	missing       known[[]cluster.Permission]
	info          known[cluster.ClusterInfo]
	kubeletConfig known[cluster.KubeletConfig]
	cni           known[cluster.CNI]
	namesake      known[cluster.Node]
	certificates  []presented
}

// presented is the certificate that the API server presents at a target.
type presented struct {
	target
	// others are the names and addresses in the certificate, if the target's host is not among
	// them; empty if it is.
	others known[[]string]
}

// nodeName returns the name that the Node object will have; "" if that name is not known.
func (f *facts) nodeName() string {
	if f.node == nil {
		return f.spec.Join.NodeName
	}
	return f.node.name.value
}

// targets returns the addresses of the API server that the node must reach: the configured address,
// and the address in cluster-info, which kubeadm and kubelet use afterwards.
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

// withPort returns the endpoint with a port. If the endpoint has no port, withPort adds 6443,
// kubeadm's default port.
func withPort(endpoint string) string {
	if _, _, err := net.SplitHostPort(endpoint); err == nil {
		return endpoint
	}
	return net.JoinHostPort(strings.Trim(endpoint, "[]"), "6443")
}

// address returns the host:port of a URL. A text without a scheme counts as a host or a host:port.
// address returns "" for "".
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
