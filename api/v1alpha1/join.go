package v1alpha1

import (
	"fmt"
	"strings"
	"time"
)

// The folders in which `swdt join` installs programs on a node, and containerd's pipe.
// The published scripts and images of SIG Windows use the same folders and pipe.
const (
	ContainerdFolder = `C:\Program Files\containerd`
	ContainerdPipe   = `\\.\pipe\containerd-containerd`
	KubernetesFolder = `C:\k`
	// KubeletConfigFolder holds the drop-in files that kubelet merges over its
	// configuration file.
	KubeletConfigFolder = `C:\var\lib\kubelet\config.d`
)

// Containerd is the container runtime of a node.
type Containerd struct {
	// Version of containerd, with or without v. If source is set and version is not,
	// swdt does not check the version.
	Version string `yaml:"version,omitempty"`
	// Source of containerd: the path or URL of an executable, a folder with
	// executables, or a release's .tar.gz. Default: the release of this version that
	// the containerd project publishes.
	Source string `yaml:"source,omitempty"`
	// SHA256 of the file at source, 64 hexadecimal digits. Default for a
	// published release: its published checksum.
	SHA256 string `yaml:"sha256,omitempty"`
	// Config is TOML that swdt merges over the configuration that the installed
	// containerd generates.
	Config string `yaml:"config,omitempty"`
	// PauseImage is the image of pod sandboxes. Default: the image that containerd's
	// generated configuration names.
	PauseImage string        `yaml:"pauseImage,omitempty"`
	CNI        ContainerdCNI `yaml:"cni,omitempty"`
	// CrictlVersion is the version of crictl, with or without v, that swdt installs
	// beside containerd, with its configuration. Default: none is installed.
	CrictlVersion string `yaml:"crictlVersion,omitempty"`
	// LogFile of the service on the node. Default
	// C:\var\log\containerd\containerd.log.
	LogFile string `yaml:"logFile,omitempty"`
	// LogLevel is trace, debug, info (default), warn, error, fatal or panic.
	LogLevel string `yaml:"logLevel,omitempty"`
}

// ContainerdCNI names the folders in which containerd looks for the pod
// network.
type ContainerdCNI struct {
	// BinDirectory holds the plugins. Default C:\opt\cni\bin.
	BinDirectory string `yaml:"binDirectory,omitempty"`
	// ConfigDirectory holds the network configuration. Default
	// C:\etc\cni\net.d.
	ConfigDirectory string `yaml:"configDirectory,omitempty"`
}

// Proxy is a proxy of the services of a node.
type Proxy struct {
	// HTTP is the proxy for http://, such as http://proxy.example.com:3128.
	HTTP string `yaml:"http,omitempty"`
	// HTTPS is the proxy for https://, which pulls of images and the API server
	// use.
	HTTPS string `yaml:"https,omitempty"`
	// NoProxy are hosts, domains (.example.com) and address ranges that are reached
	// without the proxy. swdt adds the API server and the cluster's Services and
	// pods.
	NoProxy []string `yaml:"noProxy,omitempty"`
}

// Kubelet is the kubelet of a node and the programs installed with it.
type Kubelet struct {
	// Source is the path or URL of kubelet.exe. Default: dl.k8s.io, verified by
	// its published checksum.
	Source string `yaml:"source,omitempty"`
	// KubeadmSource is the path or URL of kubeadm.exe. Default: dl.k8s.io, as for
	// source.
	KubeadmSource string `yaml:"kubeadmSource,omitempty"`
	// LogRunnerSource is the path or URL of kube-log-runner.exe, which writes
	// kubelet's log file. Default: dl.k8s.io, as for source.
	LogRunnerSource string `yaml:"logRunnerSource,omitempty"`
	// KubeProxySource is the path or URL of kube-proxy.exe, which is installed if the
	// cluster runs kube-proxy as a service. Default: dl.k8s.io, as for source.
	KubeProxySource string `yaml:"kubeProxySource,omitempty"`
	// LogFileSize is the size at which kube-log-runner begins a new log file, such
	// as 100Mi; 0 means never. This needs kube-log-runner 1.34 or newer. Default
	// 50Mi.
	LogFileSize string `yaml:"logFileSize,omitempty"`
	// LogFileAge is how long kube-log-runner keeps an older log file; 0 means for
	// ever. Default 168h.
	LogFileAge *Duration `yaml:"logFileAge,omitempty"`
	// ExtraArgs are flags of kubelet, without the dashes. They override the flags
	// that swdt and kubeadm set.
	ExtraArgs map[string]string `yaml:"extraArgs,omitempty"`
	// ConfigPatch are fields of KubeletConfiguration that override the values of
	// the cluster. This needs kubelet 1.30 or newer.
	ConfigPatch map[string]any `yaml:"configPatch,omitempty"`
	// RegisterWithTaints are taints that the node registers with, each
	// key=value:Effect or key:Effect.
	RegisterWithTaints []string `yaml:"registerWithTaints,omitempty"`
	// NodeLabels are labels of the Node object.
	NodeLabels map[string]string `yaml:"nodeLabels,omitempty"`
}

// Setting returns kubelet's value of a setting: the value of its flag in ExtraArgs, else of its field
// in ConfigPatch, else "".
func (k Kubelet) Setting(flag, field string) string {
	if value, ok := k.ExtraArgs[flag]; ok {
		return value
	}
	if value, ok := k.ConfigPatch[field]; ok {
		return fmt.Sprint(value)
	}
	return ""
}

// Join says how the machine becomes a node of a cluster.
type Join struct {
	// NodeName is the name of the Node object. Default: the machine's host
	// name in lower case.
	NodeName string `yaml:"nodeName,omitempty"`
	// NodeIP is the address that the node reports, or one of each family with a
	// comma between them. Default: the one from which the machine reaches the API
	// server and, in a dual-stack cluster, one of the other family.
	NodeIP string `yaml:"nodeIP,omitempty"`
	// ControlPlaneEndpoint is the host or host:port at which the node reaches the
	// API server; the default port is 6443. Default: the kubeconfig's server.
	ControlPlaneEndpoint string `yaml:"controlPlaneEndpoint,omitempty"`
	// ControlPlaneAlias is an entry of the node's hosts file for the API
	// server's name.
	ControlPlaneAlias *ControlPlaneAlias `yaml:"controlPlaneAlias,omitempty"`
	// Token is a bootstrap token in clear text. Unset: swdt creates one that
	// expires after a few minutes, and deletes it after use.
	Token string `yaml:"token,omitempty"`
	// TokenFrom is the source of a bootstrap token.
	TokenFrom *SecretSource `yaml:"tokenFrom,omitempty"`
	// DiscoveryTokenCACertHash pins the cluster's CA, sha256:…. Default: the
	// hash of the kubeconfig's CA.
	DiscoveryTokenCACertHash string `yaml:"discoveryTokenCACertHash,omitempty"`
	// IgnorePreflightErrors are the ids of checks (of swdt or kubeadm) whose errors
	// become warnings; all selects every check.
	IgnorePreflightErrors []string `yaml:"ignorePreflightErrors,omitempty"`
}

// ControlPlaneAlias makes a name resolve to the API server's address.
type ControlPlaneAlias struct {
	// Name as in the kubeconfig's server or in controlPlaneEndpoint.
	Name string `yaml:"name"`
	// IP is the address at which the node reaches the API server.
	IP string `yaml:"ip"`
}

// DefaultLogFileAge is how long kube-log-runner keeps an older log file of kubelet.
const DefaultLogFileAge = 7 * 24 * time.Hour

// defaultKubernetes fills in the settings of containerd and kubelet that `swdt join` uses and that the
// node file leaves out.
func defaultKubernetes(k *Kubernetes) {
	k.Containerd.SHA256 = strings.ToLower(k.Containerd.SHA256)
	defaultPath(&k.Containerd.CNI.BinDirectory, `C:\opt\cni\bin`)
	defaultPath(&k.Containerd.CNI.ConfigDirectory, `C:\etc\cni\net.d`)
	defaultPath(&k.Containerd.LogFile, `C:\var\log\containerd\containerd.log`)
	orElse(&k.Containerd.LogLevel, "info")
	orElse(&k.Kubelet.LogFileSize, "50Mi")
	if k.Kubelet.LogFileAge == nil {
		k.Kubelet.LogFileAge = &Duration{DefaultLogFileAge}
	}
}

// defaultPath sets the path to fallback if it is empty, and then gives it its usual form.
func defaultPath(path *string, fallback string) {
	orElse(path, fallback)
	if clean, err := CleanWindowsPath(*path); err == nil {
		*path = clean
	}
}
