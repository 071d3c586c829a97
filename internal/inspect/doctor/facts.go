package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/inspect/owners"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Form is the version of the JSON format of Facts.
const Form = 1

// Fact is a value that describes a node, or the reason why the value is unknown.
type Fact[T any] struct {
	Value   *T     `json:"value,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// Known returns a known fact with this value.
func Known[T any](value T) Fact[T] { return Fact[T]{Value: &value} }

// factOf returns a known fact with value. If err is not nil, factOf returns an unknown fact with
// err as the reason.
func factOf[T any](value T, err error) Fact[T] {
	switch {
	case err == nil:
		return Known(value)
	case errors.Is(err, fault.ErrNotSupported):
		return Fact[T]{Unknown: "the node does not support this: " + err.Error()}
	}
	return Fact[T]{Unknown: err.Error()}
}

// UnmarshalJSON reads a value of null as a known value, since MarshalJSON writes a nil slice
// as null.
func (f *Fact[T]) UnmarshalJSON(text []byte) error {
	var is struct {
		Value   json.RawMessage
		Unknown string
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return err
	}
	*f = Fact[T]{Unknown: is.Unknown}
	if is.Value == nil {
		return nil
	}
	f.Value = new(T)
	return json.Unmarshal(is.Value, f.Value)
}

func (f Fact[T]) why() string {
	switch {
	case f.Value != nil:
		return ""
	case f.Unknown == "":
		return "it was not gathered"
	}
	return f.Unknown
}

// Facts are all facts about a node.
type Facts struct {
	Form  int       `json:"form"`
	Node  string    `json:"node"` // the node's name in the node file
	Taken time.Time `json:"taken"`

	// The machine.
	Machine    Fact[Machine]                      `json:"machine"`
	Containers Fact[platform.FeatureState]        `json:"containersFeature"`
	Services   Fact[map[string]preflight.Service] `json:"services"` // by name in lower case
	Listeners  Fact[[]preflight.Listener]         `json:"listeners"`
	Firewall   Fact[[]FirewallRule]               `json:"firewall"` // inbound, enabled
	Defender   Fact[preflight.Defender]           `json:"defender"`
	PageFiles  Fact[[]string]                     `json:"pageFiles"`
	Updates    Fact[Updates]                      `json:"windowsUpdate"`
	Proxy      Fact[Proxy]                        `json:"proxy"`
	Roots      Fact[[]join.RootCertificate]       `json:"rootCertificates"` // those that a join has added
	Ports      Fact[Ports]                        `json:"ports"`
	Interfaces Fact[[]Interface]                  `json:"interfaces"`
	Events     Fact[[]Event]                      `json:"events"` // of the last day
	Logs       Fact[[]LogFile]                    `json:"logs"`
	Swaps      Fact[[]Swap]                       `json:"transactions"`

	// kubelet.
	Programs     Fact[map[string]Program]     `json:"programs"`           // kubelet, containerd, kube-proxy
	Placements   Fact[[]Placement]            `json:"placements"`         // provisioners of the node file whose service exists
	Changeable   Fact[[]preflight.Changeable] `json:"changeablePrograms"` // programs that ordinary accounts can change
	KubeletFlags Fact[map[string]string]      `json:"kubeletFlags"`
	KubeadmFlags Fact[KubeadmFlags]           `json:"kubeadmFlags"`
	Kubelet      Fact[KubeletConfig]          `json:"kubeletConfig"`
	Health       Fact[Health]                 `json:"kubeletHealth"`
	Kubeconfig   Fact[Kubeconfig]             `json:"kubeconfig"`
	Certificates Fact[[]Certificate]          `json:"certificates"`
	Reached      Fact[[]preflight.Reached]    `json:"apiServerAddresses"`

	// The container runtime.
	Containerd Fact[ContainerdConfig] `json:"containerdConfig"`
	Runtime    Fact[Runtime]          `json:"runtime"`
	Sandboxes  Fact[[]Sandbox]        `json:"sandboxes"`
	InUse      Fact[[]Container]      `json:"containers"`
	Images     Fact[[]Image]          `json:"images"`
	ImageStore Fact[uint64]           `json:"imageStoreBytes"`
	CNI        Fact[CNI]              `json:"cni"`

	// Containers as Windows itself reports them.
	HNS         Fact[hns.State]       `json:"hns"`
	PodNetworks Fact[[]hns.Pod]       `json:"podNetworks"`
	Orphans     Fact[[]owners.Orphan] `json:"orphans"`

	// The cluster.
	Server         Fact[Server]         `json:"apiServer"`
	Clocks         Fact[Clocks]         `json:"clocks"`
	Object         Fact[cluster.Node]   `json:"nodeObject"`
	Others         Fact[[]OtherNode]    `json:"otherNodes"`
	Pods           Fact[[]Pod]          `json:"pods"` // of this node
	RuntimeClasses Fact[[]RuntimeClass] `json:"runtimeClasses"`
	Network        Fact[cluster.CNI]    `json:"podNetwork"`
	// Programmed has the differences between HNS and the Services of the cluster.
	Programmed Fact[[]kubeproxy.Finding] `json:"programmedServices"`

	Patches
}

// unknown returns why the fact with this JSON name is unknown, or "" if it is known.
func (f *Facts) unknown(name string) string {
	facts := reflect.ValueOf(f).Elem()
	for _, field := range reflect.VisibleFields(facts.Type()) {
		if field.Tag.Get("json") != name {
			continue
		}
		if fact, ok := facts.FieldByIndex(field.Index).Interface().(interface{ why() string }); ok {
			return fact.why()
		}
	}
	return fmt.Sprintf("there is no fact %q", name)
}

// Machine is the computer as a whole. Sizes are bytes.
type Machine struct {
	Hostname       string    `json:"hostname"`
	Product        string    `json:"product"`
	Build          string    `json:"build"` // 20348.2849
	Architecture   string    `json:"architecture"`
	UptimeSeconds  float64   `json:"uptimeSeconds"`
	CPUs           int       `json:"cpus"`
	Memory         uint64    `json:"memoryBytes"`
	MemoryFree     uint64    `json:"memoryFreeBytes"`
	SystemDrive    string    `json:"systemDrive"`
	DiskFree       uint64    `json:"diskFreeBytes"`
	PendingReboot  []string  `json:"pendingReboot,omitempty"`
	Elevated       bool      `json:"elevated"`
	Simulated      string    `json:"simulated,omitempty"`
	Time           time.Time `json:"time"`
	SystemUUID     string    `json:"systemUUID,omitempty"`
	Virtualization bool      `json:"virtualization"`
}

// Windows returns the name that images for this build have in their tags, such as
// ltsc2022, or "" for an unknown build.
func (m Machine) Windows() string { return preflight.WindowsName(m.Build) }

// platform returns the facts in the form that preflight's checks read.
func (m Machine) platform() platform.Facts {
	return platform.Facts{
		Hostname: m.Hostname, Product: m.Product, Build: m.Build, Architecture: m.Architecture, Memory: m.Memory,
		MemoryFree:  m.MemoryFree,
		SystemDrive: m.SystemDrive, DiskFree: m.DiskFree, PendingReboot: m.PendingReboot, Elevated: m.Elevated,
		Time: m.Time,
		CPUs: m.CPUs, Simulated: m.Simulated, Virtualization: m.Virtualization,
		Uptime: time.Duration(m.UptimeSeconds * float64(time.Second)),
	}
}

// FirewallRule is an enabled inbound rule. Rules that block only some addresses are
// left out.
type FirewallRule = preflight.FirewallRule

// Updates describes the actions that Windows Update may take without asking.
type Updates struct {
	// Automatic reports whether Windows Update itself chooses the time to install
	// updates and reboot.
	Automatic bool `json:"automatic"`
}

// Proxy is the proxy in the machine's environment, without passwords.
type Proxy struct {
	HTTP  string `json:"http,omitempty"`
	HTTPS string `json:"https,omitempty"`
	No    string `json:"no,omitempty"`
	// Services are the proxies of the services containerd, kubelet and kube-proxy, if their own environment
	// sets a part of them.
	Services map[string]Proxy `json:"services,omitempty"`
	// Running are the proxies with which the processes of these services were started.
	Running map[string]Proxy `json:"running,omitempty"`
}

// Ports are the TCP ports that a program cannot rely on.
type Ports struct {
	Excluded     []PortRange `json:"excluded"`
	DynamicFirst uint16      `json:"dynamicFirst"`
	DynamicCount int         `json:"dynamicCount"`
}

// PortRange is a range of ports, both ends included.
type PortRange struct {
	First uint16 `json:"first"`
	Last  uint16 `json:"last"`
	// Administered reports whether an administrator reserved the range. A program that asks for a
	// specific port of an administered range gets this port.
	Administered bool `json:"administered,omitempty"`
}

func (r PortRange) has(port uint16) bool { return r.First <= port && port <= r.Last }

func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// Interface is a network interface.
type Interface struct {
	Name string `json:"name"`
	MTU  int    `json:"mtu"`
}

// Event is an event that reports a fault.
type Event struct {
	Time     time.Time `json:"time"`
	Provider string    `json:"provider"`
	ID       int       `json:"id"`
	Subject  string    `json:"subject,omitempty"` // the service that the event is about; "": no service
	Message  string    `json:"message"`
}

// LogFile is a log file that only the program that writes the file may rotate.
type LogFile struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// Swap is a push of binaries that is in progress, or whose result was not collected. The guardian
// of a push is the process on the node that finishes or undoes the push.
type Swap struct {
	ID      string    `json:"id"`
	Holder  string    `json:"holder"`
	Begun   time.Time `json:"begun"`
	State   string    `json:"state"`
	Guarded bool      `json:"guarded"` // a guardian is working on the push
	Result  string    `json:"result,omitempty"`
	Message string    `json:"message,omitempty"`
}

// folded returns s in lower case, for comparisons that ignore case.
func folded(s string) string { return strings.ToLower(s) }
