package cluster

import (
	"context"
	"errors"
	"time"
)

// ClusterInfo is what a joining node reads of the cluster before it trusts it:
// ConfigMap cluster-info in kube-public.
type ClusterInfo struct {
	Exists bool   `json:"exists"`
	Server string `json:"server,omitempty"` // the API server's URL in it
	// CACertHashes of the CA in it, sha256:….
	CACertHashes []string `json:"caCertHashes,omitempty"`
	// SignedFor are the ids of the tokens that it is signed with.
	SignedFor []string `json:"signedFor,omitempty"`
	// Anonymous is whether it can be read without credentials, as kubeadm does
	// at first.
	Anonymous bool `json:"anonymous"`
}

// KubeletConfig is ConfigMap kubelet-config in kube-system, which kubeadm join
// reads.
type KubeletConfig struct {
	Exists  bool   `json:"exists"`
	Content string `json:"content,omitempty"` // a KubeletConfiguration
}

// Skew is the API server's clock against ours.
type Skew struct {
	// Offset is what has to be added to our clock to get the server's.
	Offset time.Duration `json:"offset"`
	// Uncertainty is how far the offset may be off: half of the round trip, and
	// the half second that a Date header hides.
	Uncertainty time.Duration `json:"uncertainty"`
}

// CACertHashes are the hashes of the cluster's CA certificates as kubeadm's
// discovery takes them, sha256:…: of the kubeconfig's CA, else of cluster-info's.
func (c *Cluster) CACertHashes(ctx context.Context) ([]string, error) {
	return nil, errors.ErrUnsupported
}

// ClusterInfo reads cluster-info.
func (c *Cluster) ClusterInfo(ctx context.Context) (ClusterInfo, error) {
	return ClusterInfo{}, errors.ErrUnsupported
}

// KubeletConfig reads kubelet-config.
func (c *Cluster) KubeletConfig(ctx context.Context) (KubeletConfig, error) {
	return KubeletConfig{}, errors.ErrUnsupported
}

// ClockSkew compares the API server's clock with ours.
func (c *Cluster) ClockSkew(ctx context.Context) (Skew, error) { return Skew{}, errors.ErrUnsupported }

// Missing are those of the permissions that the kubeconfig's user does not have.
func (c *Cluster) Missing(ctx context.Context, needed []Permission) ([]Permission, error) {
	return nil, errors.ErrUnsupported
}

// JoinNeeds are the permissions that joining a node takes.
func JoinNeeds() []Permission { return nil }

// DrainNeeds are the permissions that draining a node takes.
func DrainNeeds() []Permission { return nil }
