package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/hns"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/preflight"
	"github.com/swdt-dev/swdt/internal/tasks"
)

// Form is the version of Facts as JSON.
const Form = 1

// Fact is something about a node, or why it is not known.
type Fact[T any] struct {
	Value   *T     `json:"value,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// Known is a fact.
func Known[T any](value T) Fact[T] { return Fact[T]{Value: &value} }

// learn is a fact, or the error as why it is none.
func learn[T any](value T, err error) Fact[T] {
	switch {
	case err == nil:
		return Known(value)
	case errors.Is(err, host.ErrNotSupported):
		return Fact[T]{Unknown: "this machine does not tell: " + err.Error()}
	}
	return Fact[T]{Unknown: err.Error()}
}

// UnmarshalJSON takes a value that is null for what it is: a list without entries.
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
		return "it was not looked for"
	}
	return f.Unknown
}

// Facts are all that rules look at.
type Facts struct {
	Form  int       `json:"form"`
	Node  string    `json:"node"` // as its node file calls it
	Taken time.Time `json:"taken"`

	// Of the machine.
	Machine    Fact[Machine]                      `json:"machine"`
	Containers Fact[host.FeatureState]            `json:"containersFeature"`
	Services   Fact[map[string]preflight.Service] `json:"services"` // by their name in lower case
	Listeners  Fact[[]preflight.Listener]         `json:"listeners"`
	Firewall   Fact[[]FirewallRule]               `json:"firewall"` // inbound, enabled
	Defender   Fact[preflight.Defender]           `json:"defender"`
	PageFiles  Fact[[]string]                     `json:"pageFiles"`
	Updates    Fact[Updates]                      `json:"windowsUpdate"`
	Proxy      Fact[Proxy]                        `json:"proxy"`
	Ports      Fact[Ports]                        `json:"ports"`
	Interfaces Fact[[]Interface]                  `json:"interfaces"`
	Events     Fact[[]Event]                      `json:"events"` // of the last day
	Logs       Fact[[]LogFile]                    `json:"logs"`
	Swaps      Fact[[]Swap]                       `json:"transactions"`

	// Of kubelet.
	Programs     Fact[map[string]Program]     `json:"programs"`           // by kubelet, containerd, kube-proxy
	Changeable   Fact[[]preflight.Changeable] `json:"changeablePrograms"` // by ordinary accounts
	KubeletFlags Fact[map[string]string]      `json:"kubeletFlags"`
	Kubelet      Fact[KubeletConfig]          `json:"kubeletConfig"`
	Health       Fact[Health]                 `json:"kubeletHealth"`
	Kubeconfig   Fact[Kubeconfig]             `json:"kubeconfig"`
	Certificates Fact[[]Certificate]          `json:"certificates"`
	Reached      Fact[[]preflight.Reached]    `json:"apiServerAddresses"`

	// Of the container runtime.
	Containerd Fact[ContainerdConfig] `json:"containerdConfig"`
	Runtime    Fact[Runtime]          `json:"runtime"`
	Sandboxes  Fact[[]Sandbox]        `json:"sandboxes"`
	InUse      Fact[[]Container]      `json:"containers"`
	Images     Fact[[]Image]          `json:"images"`
	ImageStore Fact[uint64]           `json:"imageStoreBytes"`
	CNI        Fact[CNI]              `json:"cni"`

	// Of Windows' own side of containers.
	HNS         Fact[hns.State]      `json:"hns"`
	PodNetworks Fact[[]hns.Pod]      `json:"podNetworks"`
	Orphans     Fact[[]tasks.Orphan] `json:"orphans"`

	// Of the cluster.
	Server         Fact[Server]         `json:"apiServer"`
	Clocks         Fact[Clocks]         `json:"clocks"`
	Object         Fact[cluster.Node]   `json:"nodeObject"`
	Others         Fact[[]OtherNode]    `json:"otherNodes"`
	Pods           Fact[[]Pod]          `json:"pods"` // of this node
	RuntimeClasses Fact[[]RuntimeClass] `json:"runtimeClasses"`
	Network        Fact[cluster.CNI]    `json:"podNetwork"`
}

// unknown is why a fact is not known, by its name in JSON; empty where it is.
func (f *Facts) unknown(name string) string {
	facts := reflect.ValueOf(f).Elem()
	for i := range facts.NumField() {
		if facts.Type().Field(i).Tag.Get("json") != name {
			continue
		}
		if fact, ok := facts.Field(i).Interface().(interface{ why() string }); ok {
			return fact.why()
		}
	}
	return fmt.Sprintf("there is no fact %q", name)
}

// Machine is the computer as a whole. Sizes are bytes.
type Machine struct {
	Hostname       string    `json:"hostname"`
	Product        string    `json:"product"`
	Build          string    `json:"build"` // 20348.2700
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

// Windows is what images for its build are called; empty for another one.
func (m Machine) Windows() string { return preflight.WindowsName(m.Build) }

// host is the machine as preflight's checks see it.
func (m Machine) host() host.Facts {
	return host.Facts{
		Hostname: m.Hostname, Product: m.Product, Build: m.Build, Architecture: m.Architecture, Memory: m.Memory, MemoryFree: m.MemoryFree,
		SystemDrive: m.SystemDrive, DiskFree: m.DiskFree, PendingReboot: m.PendingReboot, Elevated: m.Elevated, Time: m.Time,
		CPUs: m.CPUs, Simulated: m.Simulated, Virtualization: m.Virtualization, Uptime: time.Duration(m.UptimeSeconds * float64(time.Second)),
	}
}

// FirewallRule is an inbound rule that is enabled, but none that blocks a few
// addresses.
type FirewallRule struct {
	Name     string `json:"name"`
	Allow    bool   `json:"allow"`
	Protocol string `json:"protocol"`          // tcp, udp, any, …
	Ports    string `json:"ports,omitempty"`   // 10250, 8000-8100; empty: any
	Program  string `json:"program,omitempty"` // empty: any
}

// Updates is what Windows Update may do by itself.
type Updates struct {
	// Automatic is whether it installs, and reboots for it, when it likes.
	Automatic bool `json:"automatic"`
}

// Proxy is what the machine's environment says, without passwords.
type Proxy struct {
	HTTP  string `json:"http,omitempty"`
	HTTPS string `json:"https,omitempty"`
	No    string `json:"no,omitempty"`
}

// Ports are TCP ports that nobody can simply have.
type Ports struct {
	Excluded     []PortRange `json:"excluded"`
	DynamicFirst uint16      `json:"dynamicFirst"`
	DynamicCount int         `json:"dynamicCount"`
}

// PortRange is a range of ports, both ends included.
type PortRange struct {
	First uint16 `json:"first"`
	Last  uint16 `json:"last"`
	// Administered ranges are set aside for whoever asks for one of their ports.
	Administered bool `json:"administered,omitempty"`
}

func (r PortRange) has(port uint16) bool { return r.First <= port && port <= r.Last }

func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// Interface is a network interface.
type Interface struct {
	Name string `json:"name"`
	MTU  int    `json:"mtu"`
}

// Event is one that tells of a fault.
type Event struct {
	Time     time.Time `json:"time"`
	Provider string    `json:"provider"`
	ID       int       `json:"id"`
	Subject  string    `json:"subject,omitempty"` // the service, where there is one
	Message  string    `json:"message"`
}

// LogFile is a log that no one but its own program takes care of.
type LogFile struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// Swap is a push of binaries that is in flight, or whose end nobody was told.
type Swap struct {
	ID      string    `json:"id"`
	Holder  string    `json:"holder"`
	Begun   time.Time `json:"begun"`
	State   string    `json:"state"`
	Guarded bool      `json:"guarded"` // somebody is at work on it
	Result  string    `json:"result,omitempty"`
	Message string    `json:"message,omitempty"`
}

func folded(s string) string { return strings.ToLower(s) }
