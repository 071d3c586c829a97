package v1alpha1

// Content is the wanted state of a node. Its fields have the names and the meaning of spec.setup and
// spec.kubernetes in a node file.
//
// +kubebuilder:validation:XValidation:rule="has(self.setup) || has(self.provisioners)",message="setup or provisioners must be set"
type Content struct {
	// Setup is the configuration of Windows. Fields that are not set leave the node unchanged.
	// +optional
	Setup *Setup `json:"setup,omitempty"`
	// Provisioners are the binaries that each node gets, all in one transaction.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Provisioners []Provisioner `json:"provisioners,omitempty"`
}

// Setup is the configuration of Windows.
type Setup struct {
	// EnableRDP turns Remote Desktop on (true) or off (false).
	// +optional
	EnableRDP *bool `json:"enableRDP,omitempty"`
	// ChocoPackages are Chocolatey packages to install: name or name@version.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	ChocoPackages []string `json:"chocoPackages,omitempty"`
	// Features are Windows optional features to enable, such as Containers. A rollout never reboots
	// a node: a feature that needs a reboot fails on this node.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Features []string `json:"features,omitempty"`
	// Hosts are entries of the node's hosts file.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	Hosts []HostsEntry `json:"hosts,omitempty"`
	// Environment are environment variables of the machine.
	// +optional
	Environment map[string]string `json:"environment,omitempty"`
	// Path are folders to append to the machine's PATH.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Path []string `json:"path,omitempty"`
	// Firewall are rules of Windows Defender Firewall.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	Firewall []FirewallRule `json:"firewall,omitempty"`
}

// HostsEntry makes names resolve to an address.
type HostsEntry struct {
	// Address is an IPv4 or IPv6 address.
	// +kubebuilder:validation:MinLength=2
	Address string `json:"address"`
	// Names that resolve to the address.
	// +kubebuilder:validation:MinItems=1
	Names []string `json:"names"`
}

// FirewallRule allows or blocks traffic.
type FirewallRule struct {
	// Name of the rule, unique on the node.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Direction is in (default) or out.
	// +optional
	// +kubebuilder:validation:Enum=in;out
	Direction string `json:"direction,omitempty"`
	// Action is allow (default) or block.
	// +optional
	// +kubebuilder:validation:Enum=allow;block
	Action string `json:"action,omitempty"`
	// Protocol is tcp (default), udp, icmpv4, icmpv6 or any.
	// +optional
	// +kubebuilder:validation:Enum=tcp;udp;icmpv4;icmpv6;any
	Protocol string `json:"protocol,omitempty"`
	// Ports are local ports: 10250, 8000-8100, several with commas. Default any.
	// +optional
	Ports string `json:"ports,omitempty"`
	// Profiles are any (default) or some of domain,private,public.
	// +optional
	Profiles string `json:"profiles,omitempty"`
	// Addresses are remote addresses or networks, several with commas. Default any.
	// +optional
	Addresses string `json:"addresses,omitempty"`
}

// Provisioner is the wanted state of one binary and of the Windows service that runs it.
type Provisioner struct {
	// Name of the component, which is that of the Windows service to restart, unless service names another.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`
	// Service is the Windows service that runs the binary, if its name is not name; none: the file is placed
	// and nothing is restarted.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Service string `json:"service,omitempty"`
	// Version that the binary is expected to report, with or without v.
	// +optional
	Version string `json:"version,omitempty"`
	// SourceURL of the binary: http:// or https://, or a set of binaries that `swdt fleet publish` has put
	// into a registry: oci://REGISTRY/REPOSITORY:TAG or @sha256:DIGEST, and oci+http:// for a registry
	// without TLS. A set needs a component with the provisioner's name. Every user who may read the
	// rollout can read the URL, so it has no user, no password and no $VARIABLE: logins come from the
	// nodes' pull secret.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?://[^/$@ ]+(/[^$ ]*)?|oci(\+http)?://[^/$@ ]+/[^$ ]+)$`
	SourceURL string `json:"sourceURL"`
	// SHA256 of the binary, 64 hexadecimal digits. The node installs no other binary.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256"`
	// Destination is the absolute path of the file on the node.
	// +kubebuilder:validation:MaxLength=260
	// +kubebuilder:validation:Pattern=`^[A-Za-z]:[/\\].+`
	Destination string `json:"destination"`
	// Overwrite allows a different file at the destination to be replaced. Default true.
	// +optional
	Overwrite *bool `json:"overwrite,omitempty"`
	// Args are the arguments that the service is started with. Unset: the registered arguments stay.
	// +optional
	Args []string `json:"args,omitempty"`
	// DependsOn names services that must run before this service, in addition to the known ones.
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`
	// Health decides when the restarted service counts as healthy.
	// +optional
	Health *Health `json:"health,omitempty"`
}

// Health decides when a restarted service counts as healthy. Default for kubelet: its healthz
// endpoint; for containerd: CRI answers on its pipe; for other services: the same process runs for
// the settle time.
type Health struct {
	// HTTPGet is a URL that the node itself can reach and that must answer 2xx.
	// +optional
	HTTPGet string `json:"httpGet,omitempty"`
	// CRIPipe is a named pipe that must answer the CRI Version call.
	// +optional
	CRIPipe string `json:"criPipe,omitempty"`
	// None turns off the default HTTP or CRI check of this service.
	// +optional
	None bool `json:"none,omitempty"`
	// Settle is how long the service must run with the same process. Default 1s.
	// +optional
	Settle *Duration `json:"settle,omitempty"`
	// Timeout for becoming healthy. Default 60s.
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`
	// StopTimeout is how long the service may take to stop before its process is ended. Default 30s.
	// +optional
	StopTimeout *Duration `json:"stopTimeout,omitempty"`
}

// Duration is a time span as Go writes it: 90s, 5m, 1m30s.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
// +kubebuilder:validation:MaxLength=32
type Duration string
