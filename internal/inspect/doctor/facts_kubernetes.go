package doctor

import (
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// Program is one of the node's programs.
type Program struct {
	Path    string `json:"path"`
	Exists  bool   `json:"exists"`
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	// Outdated reports whether the service's process is older than the file.
	Outdated bool `json:"outdated,omitempty"`
	// Leftovers are files of earlier pushes beside the program.
	Leftovers []string `json:"leftovers,omitempty"`
}

// Placement is a provisioner of the node file, and the file that its service runs.
type Placement struct {
	Name        string `json:"name"`
	Service     string `json:"service"`
	Destination string `json:"destination"`
	Runs        string `json:"runs,omitempty"` // the file that the service runs if it is not that of the destination
}

// KubeadmFlags are the flags of kubelet in kubeadm-flags.env.
type KubeadmFlags struct {
	Path  string            `json:"path"`
	Flags map[string]string `json:"flags,omitempty"` // none if there is no such file
	// why the file cannot be read; or empty
	Problem string `json:"problem,omitempty"`
}

// KubeletConfig is a part of kubelet's configuration, from kubelet's configuration file and the
// drop-in files. The pointer of a setting that is not in these files is nil.
type KubeletConfig struct {
	Path                     string    `json:"path"`
	CgroupsPerQOS            *bool     `json:"cgroupsPerQOS,omitempty"`
	EnforceNodeAllocatable   *[]string `json:"enforceNodeAllocatable,omitempty"`
	ResolverConfig           *string   `json:"resolvConf,omitempty"`
	ContainerRuntimeEndpoint *string   `json:"containerRuntimeEndpoint,omitempty"`
	Port                     *int      `json:"port,omitempty"`
	HealthzPort              *int      `json:"healthzPort,omitempty"`
	ClusterDNS               *[]string `json:"clusterDNS,omitempty"`
	RotateCertificates       *bool     `json:"rotateCertificates,omitempty"`
	ContainerLogMaxSize      *string   `json:"containerLogMaxSize,omitempty"`
	// why kubelet does not start with the files; or empty
	Problem string `json:"problem,omitempty"`
	// Ignored are mistakes in the files that kubelet ignores.
	Ignored []IgnoredField `json:"ignored,omitempty"`
}

// IgnoredField is a field that kubelet ignores.
type IgnoredField struct {
	What   string `json:"what"` // with the file and the line
	Remedy string `json:"remedy"`
}

// Health is the answer to a health check.
type Health struct {
	URL    string `json:"url"`
	Status int    `json:"status,omitempty"`
	Body   string `json:"body,omitempty"`
	Error  string `json:"error,omitempty"` // why there was no answer
}

// Kubeconfig is the kubeconfig that kubelet uses for the API server.
type Kubeconfig struct {
	Exists    bool   `json:"exists"`
	Bootstrap bool   `json:"bootstrap"`        // reports whether the bootstrap kubeconfig exists
	Server    string `json:"server,omitempty"` // URL
	// BootstrapServer is the server in the bootstrap kubeconfig.
	BootstrapServer string   `json:"bootstrapServer,omitempty"`
	CAHashes        []string `json:"caHashes,omitempty"` // the CA's hashes in kubeadm's form, sha256:…
	// why the kubeconfig cannot be read; or empty
	Problem string `json:"problem,omitempty"`
}

// Certificate is one of kubelet's certificates, or the certificate of the cluster's CA.
type Certificate struct {
	Path     string    `json:"path"`
	Use      string    `json:"use"` // client, serving or authority
	Subject  string    `json:"subject"`
	NotAfter time.Time `json:"notAfter"`
}

// ContainerdConfig is a part of containerd's configuration.
type ContainerdConfig struct {
	Path        string `json:"path"`
	Exists      bool   `json:"exists"`
	FileVersion int    `json:"fileVersion"` // the version in the file; 0 if the file sets no version
	Refused     string `json:"refused,omitempty"`
	// The other fields are from the effective configuration, which `containerd config
	// dump` prints.
	Version      int      `json:"version,omitempty"`
	Root         string   `json:"root,omitempty"`
	Pipe         string   `json:"pipe,omitempty"`
	SandboxImage string   `json:"sandboxImage,omitempty"`
	BinFolders   []string `json:"binFolders,omitempty"`
	ConfFolder   string   `json:"confFolder,omitempty"`
	Handlers     []string `json:"handlers,omitempty"`
	// Snapshotter is that of pods without one of their own.
	Snapshotter string `json:"snapshotter,omitempty"`
	// Conflict is the reason why the CRI plugin refuses the effective configuration; or empty.
	Conflict string `json:"conflict,omitempty"`
}

// Runtime is the program that answers on the runtime's pipe.
type Runtime struct {
	Pipe       string      `json:"pipe"`
	Answers    bool        `json:"answers"`
	Error      string      `json:"error,omitempty"`
	Name       string      `json:"name,omitempty"`
	Version    string      `json:"version,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is one of the runtime's conditions.
type Condition struct {
	Type    string `json:"type"`
	Status  bool   `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func (r Runtime) condition(kind string) (Condition, bool) {
	for _, c := range r.Conditions {
		if c.Type == kind {
			return c, true
		}
	}
	return Condition{}, false
}

// Sandbox is a pod sandbox as the runtime reports it.
type Sandbox struct {
	ID        string    `json:"id"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid,omitempty"`
	Ready     bool      `json:"ready"`
	Created   time.Time `json:"created"`
	Handler   string    `json:"handler,omitempty"`
}

// Container is a container as the runtime reports it.
type Container struct {
	Sandbox string `json:"sandbox"`
	Name    string `json:"name"`
	Image   string `json:"image"` // reference or id
	State   string `json:"state"` // running, exited, …
}

// Image is an image that was pulled.
type Image struct {
	ID        string   `json:"id"`
	Tags      []string `json:"tags,omitempty"`
	Bytes     uint64   `json:"bytes"`
	OS        string   `json:"os,omitempty"`
	OSVersion string   `json:"osVersion,omitempty"`
}

// CNI is the pod network's configuration on the node.
type CNI struct {
	Folder   string    `json:"folder"`
	Files    []CNIFile `json:"files"`    // sorted by name; the runtime uses the first file
	Binaries []string  `json:"binaries"` // names of the files in the binary folders
	// Folders are the folders in which the runtime looks for binaries.
	Folders []string `json:"folders"`
	// Elsewhere are configuration files in other folders, if the runtime's folder has none.
	Elsewhere []string `json:"elsewhere,omitempty"`
}

// CNIFile is one configuration file of a pod network.
type CNIFile struct {
	Path    string   `json:"path"`
	Name    string   `json:"name,omitempty"`
	Plugins []string `json:"plugins,omitempty"` // including IPAM plugins
	Problem string   `json:"problem,omitempty"`
}

// Server is the API server.
type Server struct {
	URL      string   `json:"url"`
	Version  string   `json:"version,omitempty"`
	Error    string   `json:"error,omitempty"` // why the API server does not answer; or empty
	CAHashes []string `json:"caHashes,omitempty"`
	// Unasked reports whether the API server was not asked, since the kubeconfig's credential plugin
	// gave no credentials.
	Unasked bool `json:"unasked,omitempty"`
}

// Clocks has the times by which the clocks of the node and the API server are ahead of the clock of
// your machine, and the uncertainties of these times. All values are in seconds.
type Clocks struct {
	NodeAhead    float64 `json:"nodeAheadSeconds"`
	NodeWithin   float64 `json:"nodeWithinSeconds"`
	ServerAhead  float64 `json:"serverAheadSeconds"`
	ServerWithin float64 `json:"serverWithinSeconds"`
}

// OtherNode is a Node object of the cluster that does not belong to this node.
type OtherNode struct {
	Name       string   `json:"name"`
	SystemUUID string   `json:"systemUUID,omitempty"`
	Addresses  []string `json:"addresses,omitempty"`
	Ready      bool     `json:"ready"`
}

// Pod is a pod of this node as the API server reports it.
type Pod struct {
	cluster.Pod
	Phase        string    `json:"phase"`
	OS           string    `json:"os,omitempty"` // from spec.os, else from the node selector
	RuntimeClass string    `json:"runtimeClass,omitempty"`
	HostNetwork  bool      `json:"hostNetwork,omitempty"`
	IP           string    `json:"ip,omitempty"`
	Created      time.Time `json:"created"`
	Deleted      time.Time `json:"deleted,omitzero"`
	// Waiting has the reasons why the pod's containers wait: "app: ErrImagePull: …".
	Waiting  []string `json:"waiting,omitempty"`
	Restarts int      `json:"restarts,omitempty"`
	Reason   string   `json:"reason,omitempty"` // PodOSNotSupported
}

// RuntimeClass is a RuntimeClass of the cluster.
type RuntimeClass struct {
	Name    string `json:"name"`
	Handler string `json:"handler"`
	// Windows reports whether the node selector of the RuntimeClass restricts pods to Windows
	// nodes.
	Windows bool `json:"windows"`
}
