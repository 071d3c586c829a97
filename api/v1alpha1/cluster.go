package v1alpha1

// ClusterKind is the kind of a document that describes a cluster.
const ClusterKind = "Cluster"

// Cluster is a Kubernetes cluster for Windows nodes. Its document is in the same
// file as the nodes, or in another file.
type Cluster struct {
	// APIVersion is windows.k8s.io/v1alpha1.
	APIVersion string `yaml:"apiVersion"`
	// Kind is Cluster.
	Kind string `yaml:"kind"`
	// Metadata names the cluster. The name has at most 50 lower-case letters, digits, and - . between
	// them, since it becomes a part of container names.
	Metadata Metadata    `yaml:"metadata"`
	Spec     ClusterSpec `yaml:"spec"`
}

// ClusterSpec is the wanted state of the cluster.
type ClusterSpec struct {
	ControlPlane ControlPlane   `yaml:"controlPlane"`
	Network      ClusterNetwork `yaml:"network,omitempty"`
}

// ControlPlane is the part of the cluster that runs on Linux. Exactly one of its fields is set.
type ControlPlane struct {
	// Kind makes the cluster with kind, in containers on your machine.
	Kind *KindControlPlane `yaml:"kind,omitempty"`
	// Existing is a cluster that you have already. swdt neither makes nor deletes it.
	Existing *ExistingControlPlane `yaml:"existing,omitempty"`
}

// ExistingControlPlane is a cluster that another tool has made. If no field is set, it is the cluster
// that kubectl uses.
type ExistingControlPlane struct {
	// Kubeconfig is the path of the kubeconfig. Default: kubectl's, which are the files of
	// KUBECONFIG, else ~/.kube/config. swdt only reads it.
	Kubeconfig string `yaml:"kubeconfig,omitempty"`
	// Context is the name of the kubeconfig's context. Default: its current one.
	Context string `yaml:"context,omitempty"`
}

// KindControlPlane is a cluster of kind.
type KindControlPlane struct {
	// Image is kind's node image, preferably with its digest. The image determines
	// the cluster's Kubernetes version. Default: the image of the kind release that
	// swdt contains.
	Image string `yaml:"image,omitempty"`
	// Workers is the number of Linux nodes beside the control plane. Default 0:
	// Linux pods run on the control plane.
	Workers int `yaml:"workers,omitempty"`
	// Runtime is docker, nerdctl or podman. Default: the first that answers, in
	// this order.
	Runtime string `yaml:"runtime,omitempty"`
	// APIServerAddress is the address of your machine at which the API server is
	// published. Windows nodes on kind's own bridge do not need it. Default
	// 127.0.0.1.
	APIServerAddress string `yaml:"apiServerAddress,omitempty"`
	// APIServerPort is the port of the API server at apiServerAddress. Default: a
	// free port.
	APIServerPort int `yaml:"apiServerPort,omitempty"`
	// APIServerNames are more names and addresses by which nodes reach the API
	// server. swdt adds them to the API server's certificate.
	APIServerNames []string `yaml:"apiServerNames,omitempty"`
	// Images are the names of images of your container runtime, as `docker images`
	// prints them. swdt loads these images into each Linux node, so that no node
	// pulls them.
	Images []string `yaml:"images,omitempty"`
	// RegistryMirrors are the mirrors from which the Linux nodes pull images.
	RegistryMirrors []RegistryMirror `yaml:"registryMirrors,omitempty"`
}

// RegistryMirror is the list of mirrors of one registry.
type RegistryMirror struct {
	// Registry is the host of the registry, such as docker.io, with the port if there
	// is one; or _default for all registries that the list does not name.
	Registry string `yaml:"registry"`
	// Endpoints are the URLs of the mirrors. containerd tries them in this order, and
	// the registry itself last. If a URL has a path, such as the path of a project of
	// Harbor, containerd uses the path as the whole prefix of the mirror's API.
	Endpoints []string `yaml:"endpoints"`
}

// ClusterNetwork has the networks of the cluster.
type ClusterNetwork struct {
	// PodSubnet is the range of the pods' addresses. Default 10.244.0.0/16; the range
	// of an existing cluster is read from the cluster.
	PodSubnet string `yaml:"podSubnet,omitempty"`
	// ServiceSubnet is the range of the Services' addresses. Default 10.96.0.0/16;
	// the range of an existing cluster is read from the cluster.
	ServiceSubnet string `yaml:"serviceSubnet,omitempty"`
	// Plugin is the pod network that `swdt up` installs: calico, flannel, antrea or none.
	// Default calico, since a new cluster of kind has no pod network; for an existing
	// cluster none, since it usually has a pod network, and two of them do not work together.
	Plugin string `yaml:"plugin,omitempty"`
	// KubeProxy is how kube-proxy runs on Windows nodes: service (a Windows service, which
	// swdt join makes), daemonset or none. Default: what `swdt network install --kube-proxy`
	// has recorded in the cluster, or daemonset. Antrea replaces kube-proxy.
	KubeProxy string `yaml:"kubeProxy,omitempty"`
	// Version is the plugin's version. Default: of the versions whose hashes swdt knows, the
	// newest that the project tests with the cluster's Kubernetes.
	Version string `yaml:"version,omitempty"`
	// Manifest is the path or URL of a manifest to install instead of the published
	// manifest of a version.
	Manifest string `yaml:"manifest,omitempty"`
	// SHA256 is the hash of the manifest, in hexadecimal. It is required for a version
	// whose hash swdt does not know, and for a manifest at a URL.
	SHA256 string `yaml:"sha256,omitempty"`
	// CRDManifest is the path or URL of the manifest with CustomResourceDefinitions, if the
	// plugin has them beside manifest: calico has operator-crds.yaml since 3.30.
	CRDManifest string `yaml:"crdManifest,omitempty"`
	// CRDSHA256 is the hash of the manifest with CustomResourceDefinitions, as sha256 is that
	// of the other one.
	CRDSHA256 string `yaml:"crdSHA256,omitempty"`
	// WindowsManifest is the path or URL of the manifest for Windows nodes, if the plugin
	// has one of its own beside manifest: antrea has antrea-windows-with-ovs.yml.
	WindowsManifest string `yaml:"windowsManifest,omitempty"`
	// WindowsSHA256 is the hash of the manifest for Windows nodes, as sha256 is that of
	// the other one.
	WindowsSHA256 string `yaml:"windowsSHA256,omitempty"`
}

// The pod networks of a cluster.
const (
	CalicoPlugin  = "calico"
	FlannelPlugin = "flannel"
	AntreaPlugin  = "antrea"
	NoPlugin      = "none"
)

// The default subnets of a cluster.
const (
	DefaultPodSubnet     = "10.244.0.0/16"
	DefaultServiceSubnet = "10.96.0.0/16"
)

// SetClusterDefaults fills in the fields that the file leaves out. It accepts a cluster
// that is not validated yet, and may be called more than once.
func SetClusterDefaults(c *Cluster) {
	if kind := c.Spec.ControlPlane.Kind; kind != nil {
		orElse(&kind.APIServerAddress, "127.0.0.1")
	}
	if c.Spec.ControlPlane.Existing != nil { // the subnets of an existing cluster are read from it
		orElse(&c.Spec.Network.Plugin, NoPlugin)
		return
	}
	orElse(&c.Spec.Network.PodSubnet, DefaultPodSubnet)
	orElse(&c.Spec.Network.ServiceSubnet, DefaultServiceSubnet)
	orElse(&c.Spec.Network.Plugin, CalicoPlugin)
}
