package v1alpha1

import "time"

const (
	APIVersion = "windows.k8s.io/v1alpha1"
	Kind       = "Node"
)

// Node is one Windows node.
type Node struct {
	// APIVersion is windows.k8s.io/v1alpha1.
	APIVersion string `yaml:"apiVersion"`
	// Kind is Node.
	Kind     string   `yaml:"kind"`
	Metadata Metadata `yaml:"metadata"`
	Spec     NodeSpec `yaml:"spec"`
}

// Metadata names the node.
type Metadata struct {
	// Name of the node, as used with --node, or of the cluster.
	Name string `yaml:"name"`
	// Labels to select nodes with (--selector).
	Labels map[string]string `yaml:"labels,omitempty"`
}

// NodeSpec is the wanted state of the node.
type NodeSpec struct {
	Credentials Credentials `yaml:"credentials,omitempty"`
	// Machine is the VM that swdt makes for this node, with `swdt vm create`.
	// Unset: the node is a machine that swdt does not own.
	Machine    *Machine   `yaml:"machine,omitempty"`
	Setup      Setup      `yaml:"setup,omitempty"`
	Kubernetes Kubernetes `yaml:"kubernetes,omitempty"`
}

// Credentials are the settings with which swdt reaches the node: by SSH, or through its
// cluster. For SSH, at most one of privateKey, password and passwordFrom is set; if none is
// set, swdt tries the SSH agent and the usual keys in ~/.ssh.
type Credentials struct {
	// Username to log in as; the user must be an administrator of the node.
	// Default: ~/.ssh/config's User for the host, else Administrator.
	Username string `yaml:"username,omitempty"`
	// Hostname is host or host:port ([::1]:22 for IPv6); a Host of
	// ~/.ssh/config works. The default port is 22. Required unless kubernetes or machine is
	// set. If machine is set, swdt fills in the VM's address and, if no way to log in is set,
	// the VM's key.
	Hostname string `yaml:"hostname,omitempty"`
	// PrivateKey is the path of a private key; ~ and $VARIABLES are expanded.
	PrivateKey string `yaml:"privateKey,omitempty"`
	// PassphraseFrom is the source of the private key's passphrase. Unset: swdt
	// prompts on the terminal.
	PassphraseFrom *SecretSource `yaml:"passphraseFrom,omitempty"`
	// Password in clear text. Prefer passwordFrom.
	Password string `yaml:"password,omitempty"`
	// PasswordFrom is the source of the password.
	PasswordFrom *SecretSource `yaml:"passwordFrom,omitempty"`
	// HostKey pins the node's host key by its fingerprint, SHA256:….
	HostKey string `yaml:"hostKey,omitempty"`
	// ProxyJump is [user@]host[:port] of a jump host, or several with commas.
	ProxyJump string `yaml:"proxyJump,omitempty"`
	// Kubernetes reaches the node through its cluster instead of SSH, so that it needs no
	// sshd: swdt makes a HostProcess pod on the node and runs its agent there, as SYSTEM. The
	// other fields of the credentials are then not set.
	Kubernetes *ThroughKubernetes `yaml:"kubernetes,omitempty"`
}

// ThroughKubernetes is the way to a node through the API server of its cluster.
type ThroughKubernetes struct {
	// Node is the name of the Node object. Default: the name in metadata, in lower case.
	Node string `yaml:"node,omitempty"`
	// Kubeconfig is the path of the kubeconfig; ~ and $VARIABLES are expanded. Default:
	// kubectl's, which are the files of KUBECONFIG, else ~/.kube/config.
	Kubeconfig string `yaml:"kubeconfig,omitempty"`
	// Context is the name of the kubeconfig's context. Default: its current one.
	Context string `yaml:"context,omitempty"`
	// Namespace is the namespace of the pod. swdt makes it if it is missing. Whoever may exec
	// into pods there, or make them, is SYSTEM on the node. Default swdt-system.
	Namespace string `yaml:"namespace,omitempty"`
	// Image is the image of the pod: any Windows image that the node can pull, or a mirror of
	// the default, Microsoft's base image for HostProcess containers, which has a few
	// kilobytes.
	Image string `yaml:"image,omitempty"`
}

// SecretSource is the source of a secret; exactly one field is set.
type SecretSource struct {
	// Env names an environment variable of your machine.
	Env string `yaml:"env,omitempty"`
	// File is the path of a file whose first line is the secret.
	File string `yaml:"file,omitempty"`
}

// Setup is the state that `swdt setup` gives the node. Fields that are not set
// leave the node unchanged.
type Setup struct {
	// EnableRDP turns Remote Desktop on (true) or off (false).
	EnableRDP *bool `yaml:"enableRDP,omitempty"`
	// ChocoPackages are Chocolatey packages to install: name or name@version.
	// Chocolatey is installed first if it is missing.
	ChocoPackages []string `yaml:"chocoPackages,omitempty"`
	// Features are Windows optional features to enable, such as Containers.
	Features []string `yaml:"features,omitempty"`
	// Hosts are entries of the node's hosts file.
	Hosts []HostsEntry `yaml:"hosts,omitempty"`
	// Environment are environment variables of the machine.
	Environment map[string]string `yaml:"environment,omitempty"`
	// Path are folders to append to the machine's PATH.
	Path []string `yaml:"path,omitempty"`
	// Firewall are rules of Windows Defender Firewall.
	Firewall []FirewallRule `yaml:"firewall,omitempty"`
	OpenSSH  *OpenSSH       `yaml:"openSSH,omitempty"`
	// Registry are values of the registry. `swdt reset` restores the previous ones.
	Registry []RegistryValue `yaml:"registry,omitempty"`
	// AutomaticUpdates turns Windows' automatic installation of updates, which may
	// reboot the node, on (true) or off (false) by a policy. Without updates, the
	// node keeps known vulnerabilities until you install them. `swdt reset`
	// restores the previous policy.
	AutomaticUpdates *bool `yaml:"automaticUpdates,omitempty"`
	// Defender are settings of Microsoft Defender.
	Defender Defender `yaml:"defender,omitempty"`
}

// RegistryValue is a value of the registry; exactly one of dword and string is set.
type RegistryValue struct {
	// Key is below HKLM, such as
	// HKLM\SYSTEM\CurrentControlSet\Services\hns\State. swdt makes it if it is
	// missing.
	Key string `yaml:"key"`
	// Name of the value.
	Name string `yaml:"name"`
	// DWord is the number of a REG_DWORD.
	DWord *uint32 `yaml:"dword,omitempty"`
	// String is the text of a REG_SZ.
	String *string `yaml:"string,omitempty"`
}

// Defender are settings of Microsoft Defender. `swdt reset` removes the exclusions
// that `swdt setup` has added.
type Defender struct {
	// ExcludePaths are files and folders that Microsoft Defender does not scan.
	ExcludePaths []string `yaml:"excludePaths,omitempty"`
	// ExcludeProcesses are the paths of programs. Microsoft Defender does not scan
	// the files that they open.
	ExcludeProcesses []string `yaml:"excludeProcesses,omitempty"`
}

// HostsEntry makes names resolve to an address.
type HostsEntry struct {
	// Address is an IPv4 or IPv6 address.
	Address string `yaml:"address"`
	// Names that resolve to the address.
	Names []string `yaml:"names"`
}

// FirewallRule allows or blocks traffic.
type FirewallRule struct {
	// Name of the rule, unique on the node.
	Name string `yaml:"name"`
	// Direction is in (default) or out.
	Direction string `yaml:"direction,omitempty"`
	// Action is allow (default) or block.
	Action string `yaml:"action,omitempty"`
	// Protocol is tcp (default), udp, icmpv4, icmpv6 or any.
	Protocol string `yaml:"protocol,omitempty"`
	// Ports are local ports: 10250, 8000-8100, several with commas. Default
	// any.
	Ports string `yaml:"ports,omitempty"`
	// Profiles are any (default) or some of domain,private,public.
	Profiles string `yaml:"profiles,omitempty"`
	// Addresses are remote addresses or networks, several with commas. Default
	// any.
	Addresses string `yaml:"addresses,omitempty"`
}

// OpenSSH configures the node's SSH server.
type OpenSSH struct {
	// AuthorizedKeys are public keys that administrators may log in with, each
	// a line in authorized_keys format, or the path of a .pub file. swdt adds
	// them to administrators_authorized_keys and keeps the keys that are
	// already in it.
	AuthorizedKeys []string `yaml:"authorizedKeys,omitempty"`
}

// Kubernetes is the software that the node runs.
type Kubernetes struct {
	// Version of Kubernetes that `swdt join` installs, with or without v.
	Version string `yaml:"version,omitempty"`
	// Containerd is the container runtime that `swdt join` installs.
	Containerd Containerd `yaml:"containerd,omitempty"`
	// Kubelet is the kubelet that `swdt join` installs.
	Kubelet Kubelet `yaml:"kubelet,omitempty"`
	// Join describes how `swdt join` makes the machine a node of a cluster.
	Join Join `yaml:"join,omitempty"`
	// Proxy is the proxy of containerd and kubelet. Default: HTTP_PROXY,
	// HTTPS_PROXY and NO_PROXY of setup.environment; {} means none.
	Proxy *Proxy `yaml:"proxy,omitempty"`
	// CertificateAuthorities are root certificates that the node trusts, such as
	// that of a private registry or of a proxy, each in PEM or the path of a file
	// with one or several. `swdt join` adds them to the machine's store, by which
	// containerd verifies registries, and restarts containerd; `swdt reset` removes
	// them.
	CertificateAuthorities []string `yaml:"certificateAuthorities,omitempty"`
	// Provisioners are the binaries that `swdt push` pushes to the node,
	// all in one transaction.
	Provisioners []Provisioner `yaml:"provisioners,omitempty"`
}

// Provisioner is the wanted state of one component of the node: the binary, its
// destination, and how the Windows service that runs the binary is started and checked.
// On your machine, SourceURL and SHA256 become a request for the binary (source.Request),
// and Build describes how to make it; the other fields concern the node.
type Provisioner struct {
	// Name of the component, which is that of the Windows service to restart,
	// unless Service names another.
	Name string `yaml:"name"`
	// Service is the Windows service that runs the binary, if its name is not
	// Name; none: swdt places the file and restarts nothing.
	Service string `yaml:"service,omitempty"`
	// Version that the binary is expected to report, with or without v. A
	// mismatch is a warning, with --strict an error.
	Version string `yaml:"version,omitempty"`
	// SourceURL of the binary: a path, file://, http(s):// or oci://. ~ and
	// $VARIABLES are expanded; a relative path is relative to the node file's
	// folder. oci://REGISTRY/REPOSITORY:TAG or …@sha256:DIGEST is a set of
	// binaries that `swdt fleet publish` has published, in which Name selects
	// the binary; oci+http:// is a registry without TLS.
	SourceURL string `yaml:"sourceURL"`
	// SHA256 of the binary, 64 hexadecimal digits.
	SHA256 string `yaml:"sha256,omitempty"`
	// Destination is the absolute path of the file on the node.
	Destination string `yaml:"destination"`
	// Overwrite allows swdt to replace a different file at the destination.
	// Default true.
	Overwrite *bool `yaml:"overwrite,omitempty"`
	// Args are the arguments that the service is started with. Unset: swdt
	// keeps the registered arguments.
	Args []string `yaml:"args,omitempty"`
	// DependsOn names services that must run before this service, in addition to
	// the known dependencies: kubelet and kube-proxy need containerd, and each
	// service needs the services that its registration on the node names.
	DependsOn []string `yaml:"dependsOn,omitempty"`
	Health    *Health  `yaml:"health,omitempty"`
	// Build describes how the binary at sourceURL is built. Unset: swdt does
	// not build it.
	Build *Build `yaml:"build,omitempty"`
}

// Health decides when a restarted service counts as healthy. Default for
// kubelet: its healthz endpoint; for containerd: CRI answers on its pipe;
// for other services: the same process runs for the settle time.
type Health struct {
	// HTTPGet is a URL that the node itself can reach and that must answer 2xx.
	HTTPGet string `yaml:"httpGet,omitempty"`
	// CRIPipe is a named pipe that must answer the CRI Version call.
	CRIPipe string `yaml:"criPipe,omitempty"`
	// None turns off the default HTTP or CRI check of this service.
	None bool `yaml:"none,omitempty"`
	// Settle is how long the service must run with the same process. Default 1s.
	Settle *Duration `yaml:"settle,omitempty"`
	// Timeout for becoming healthy. Default 60s.
	Timeout *Duration `yaml:"timeout,omitempty"`
	// StopTimeout is how long the service may take to stop before swdt ends its
	// process. Default 30s.
	StopTimeout *Duration `yaml:"stopTimeout,omitempty"`
}

// Duration is a time span as Go writes it: 90s, 5m, 1m30s.
type Duration struct{ time.Duration }
