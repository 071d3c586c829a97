package upgradecheck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
)

// Kind is the kind of a setting.
type Kind int

// The kinds of settings.
const (
	FlagSetting  Kind = iota // a flag on a command line
	GateSetting              // a feature gate
	FieldSetting             // a field of a configuration file
)

// Form is the way in which a program gets a setting.
type Form int

// The forms of settings.
const (
	CommandLine Form = iota
	ConfigFile       // the file of --config
	DropIn           // a file in kubelet's folder of --config-dir
	Script           // the text of a script, which may set it in some cases alone
	Image            // the script inside a known image
	Effective        // what a running program reports about itself
)

// Setting is one setting of a program.
type Setting struct {
	Program kubesettings.Program
	Kind    Kind
	Name    string // of a flag without dashes, of a gate, or the path of a field
	Value   string // of a gate: true or false; "" of a field that is a mapping or a list
	Form    Form
	Place   Place
	// Ignored is the reason why the program does not read the setting; "": it reads it.
	Ignored string
	// Condition decides whether a script makes the setting, if that can be seen.
	Condition string
	// Linux reports that only Linux nodes use the setting.
	Linux bool
	// windows reports that Windows nodes use the setting.
	windows bool
	// Empty reports that a field has no value: null, or an empty list or mapping.
	Empty bool
	// configMap is the ConfigMap, as namespace/name, whose kube-proxy configuration has the field.
	configMap string
}

// text returns the setting as its author wrote it, such as --feature-gates=WinDSR=true.
func (s Setting) text() string {
	switch {
	case s.Kind == FlagSetting && s.Value == "":
		return "--" + s.Name
	case s.Kind == FlagSetting:
		return "--" + s.Name + "=" + s.Value
	case s.Kind == GateSetting && s.Form == CommandLine:
		return "--feature-gates=" + s.Name + "=" + s.Value
	case s.Kind == GateSetting && s.Form == Script, s.Kind == GateSetting && s.Form == Image:
		return s.Name + "=" + s.Value
	case s.Kind == GateSetting:
		return "featureGates." + s.Name + ": " + s.Value
	case s.Value == "":
		return s.Name
	}
	return s.Name + ": " + s.Value
}

// mayBeForLinux reports that nothing names the system of the nodes that use the setting, as in a file.
func (s Setting) mayBeForLinux() bool { return s.Place.Node == "" && !s.windows }

// Place is the place of a setting.
type Place struct {
	Node   string `json:"node"`   // "": on no node
	Object string `json:"object"` // such as DaemonSet kube-system/kube-proxy-windows; "": in no object
	File   string `json:"file"`   // a file of the folder or of the node
	Line   int    `json:"line"`   // in File, from 1; 0: unknown
	Field  string `json:"field"`  // of the object, such as data[config.conf], or the service whose command line it is
}

// String returns the parts that are known, such as "node win-1, C:\k\start.ps1:12".
func (p Place) String() string {
	var parts []string
	if p.Node != "" {
		parts = append(parts, "node "+p.Node)
	}
	switch {
	case p.File != "" && p.Line > 0:
		parts = append(parts, fmt.Sprintf("%s:%d", p.File, p.Line))
	case p.File != "":
		parts = append(parts, p.File)
	}
	for _, part := range []string{p.Object, p.Field} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

// at returns the place with a line.
func (p Place) at(line int) Place {
	p.Line = line
	return p
}

// Node is a Windows node, as far as it is known.
type Node struct {
	Name string `json:"name"`
	// Result is "read", or "failed" if nothing on the node was read.
	Result     string `json:"result"`
	Error      string `json:"error"`      // why nothing was read
	Kubelet    string `json:"kubelet"`    // its version; "": unknown
	KubeProxy  string `json:"kubeProxy"`  // of a kube-proxy that is a service; "": unknown, or none
	Containerd string `json:"containerd"` // its version; "": unknown, or another runtime
	Build      string `json:"build"`      // of Windows, such as 10.0.20348.2762; "": unknown
	// Read are the parts that were read.
	Read []string `json:"read"`
}

// The results of reading a node.
const (
	NodeRead   = "read"
	NodeFailed = "failed"
)

// ContainerdFile is a configuration of containerd.
type ContainerdFile struct {
	Place   Place
	Version string // of the containerd that reads it now; "": unknown
	Text    []byte
}

// Pods are pods of one owner that Windows nodes run.
type Pods struct {
	Place     Place
	Images    []string
	Selectors map[string]string // of nodes
	// Spec has what decides which nodes take the pods: the selectors, the affinity and the tolerations.
	Spec corev1.PodSpec
	// HostProcess reports that each container is a HostProcess container, by its own setting or by that of the pods.
	HostProcess bool
}

// NetworkFile is the CNI configuration that containerd of a node uses.
type NetworkFile struct {
	Place   Place
	Plugins []string // the types of its plugins, in their order
}

// Override is an override of a feature of Windows that an installer of nodes sets for some builds alone.
type Override struct {
	Place     Place
	Name      string // the ID of the feature
	Value     string
	Builds    []int // of Windows, for which the installer sets it
	Installer string
	Source    string
}

// Unread is a text that could not be read, or only in part.
type Unread struct {
	Place Place  `json:"place"`
	Why   string `json:"why"`
}

// Facts are all that Check looks at.
type Facts struct {
	Server     string // the API server's version; "": unknown
	Nodes      []Node
	Settings   []Setting
	Containerd []ContainerdFile
	Pods       []Pods
	Networks   []NetworkFile
	Overrides  []Override
	Unread     []Unread
	// NodeFiles are the places of swdt's own documents, a Node or a Cluster, which have no settings.
	NodeFiles []Place
	// Texts counts the files and objects that were read.
	Texts int
	// proxyReads has the ConfigMaps, as namespace/name, whose configuration a kube-proxy on Windows nodes reads.
	proxyReads map[string]bool
}

// Add adds the facts of another reading. A node that both have is one.
func (f *Facts) Add(o Facts) {
	if f.Server == "" {
		f.Server = o.Server
	}
	for _, n := range o.Nodes {
		f.addNode(n)
	}
	f.Settings, f.Containerd = append(f.Settings, o.Settings...), append(f.Containerd, o.Containerd...)
	f.Pods, f.Unread = append(f.Pods, o.Pods...), append(f.Unread, o.Unread...)
	f.Networks, f.Overrides = append(f.Networks, o.Networks...), append(f.Overrides, o.Overrides...)
	f.NodeFiles = append(f.NodeFiles, o.NodeFiles...)
	f.Texts += o.Texts
	if f.proxyReads == nil {
		f.proxyReads = map[string]bool{}
	}
	maps.Copy(f.proxyReads, o.proxyReads)
}

// addNode adds a node. The values that its own machine reports replace those of the cluster.
func (f *Facts) addNode(n Node) {
	i := slices.IndexFunc(f.Nodes, func(is Node) bool { return is.Name == n.Name })
	if i < 0 {
		f.Nodes = append(f.Nodes, n)
		return
	}
	is := &f.Nodes[i]
	if n.Result == NodeRead {
		is.Result, is.Error = NodeRead, ""
	}
	is.Kubelet, is.KubeProxy = cmp.Or(n.Kubelet, is.Kubelet), cmp.Or(n.KubeProxy, is.KubeProxy)
	is.Containerd, is.Build = cmp.Or(n.Containerd, is.Containerd), cmp.Or(n.Build, is.Build)
	is.Read = append(is.Read, n.Read...)
}
