package cluster

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	bootstrap "k8s.io/cluster-bootstrap/token/api"
)

// ClusterInfo is ConfigMap cluster-info in kube-public. A joining node reads this ConfigMap before
// it trusts the cluster.
type ClusterInfo struct {
	Exists bool   `json:"exists"`
	Server string `json:"server,omitempty"` // the API server's URL in the ConfigMap
	// CACertHashes are the hashes (sha256:…) of the CA certificates in the ConfigMap.
	CACertHashes []string `json:"caCertHashes,omitempty"`
	// SignedFor has the ids of the tokens for which the ConfigMap has a signature.
	SignedFor []string `json:"signedFor,omitempty"`
	// Anonymous reports whether the ConfigMap can be read without credentials. kubeadm join first
	// reads it without credentials.
	Anonymous bool `json:"anonymous"`
}

func (i ClusterInfo) signedFor(token string) bool { return slices.Contains(i.SignedFor, token) }

// ClusterInfo reads cluster-info.
func (c *Cluster) ClusterInfo(ctx context.Context) (ClusterInfo, error) {
	info, err := c.clusterInfo(ctx)
	if err != nil || !info.Exists {
		return info, err
	}
	info.Anonymous, err = c.anonymousReads(ctx)
	return info, err
}

func (c *Cluster) clusterInfo(ctx context.Context) (ClusterInfo, error) {
	data, exists, err := c.configMap(ctx, metav1.NamespacePublic, bootstrap.ConfigMapClusterInfo)
	if err != nil || !exists {
		return ClusterInfo{}, err
	}
	info := ClusterInfo{Exists: true}
	for key := range data {
		if token, ok := strings.CutPrefix(key, bootstrap.JWSSignatureKeyPrefix); ok {
			info.SignedFor = append(info.SignedFor, token)
		}
	}
	slices.Sort(info.SignedFor)
	config, err := clientcmd.Load([]byte(data[bootstrap.KubeConfigKey]))
	if err != nil {
		return ClusterInfo{}, fmt.Errorf("read the kubeconfig in ConfigMap %s: %w", bootstrap.ConfigMapClusterInfo, err)
	}
	for _, cluster := range config.Clusters { // there is only one
		info.Server = cluster.Server
		if len(cluster.CertificateAuthorityData) == 0 { // kubeadm itself reports a missing CA
			continue
		}
		info.CACertHashes, err = PublicKeyHashes(cluster.CertificateAuthorityData)
		if err != nil {
			return ClusterInfo{}, fmt.Errorf("read the CA in ConfigMap %s: %w", bootstrap.ConfigMapClusterInfo, err)
		}
	}
	return info, nil
}

// anonymousReads reports whether cluster-info can be read without credentials. Without a
// rest.Config, it cannot test this, and returns true.
func (c *Cluster) anonymousReads(ctx context.Context) (bool, error) {
	if c.config == nil {
		return true, nil
	}
	nobody := rest.AnonymousClientConfig(c.config)
	nobody.Timeout = c.config.Timeout
	client, err := kubernetes.NewForConfig(nobody)
	if err != nil {
		return false, &ConfigError{Err: err}
	}
	_, err = client.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrap.ConfigMapClusterInfo,
		metav1.GetOptions{})
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return false, nil
	}
	return err == nil, c.fail("read ConfigMap cluster-info without credentials", Permission{}, err)
}

// KubeletConfig is ConfigMap kubelet-config in kube-system, which kubeadm join reads.
type KubeletConfig struct {
	Exists  bool   `json:"exists"`
	Content string `json:"content,omitempty"` // a KubeletConfiguration
}

// KubeletConfig reads kubelet-config.
func (c *Cluster) KubeletConfig(ctx context.Context) (KubeletConfig, error) {
	data, _, err := c.configMap(ctx, metav1.NamespaceSystem, "kubelet-config")
	content, ok := data["kubelet"]
	return KubeletConfig{Exists: ok, Content: content}, err
}

// configMap returns a ConfigMap's data. It also reports whether the ConfigMap exists.
func (c *Cluster) configMap(ctx context.Context, namespace, name string) (map[string]string, bool, error) {
	m, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, c.fail("read ConfigMap "+namespace+"/"+name,
			Permission{Verb: "get", Resource: string(corev1.ResourceConfigMaps), Namespace: namespace, Name: name}, err)
	}
	return m.Data, true, nil
}

// CACertHashes returns the hashes of the cluster's CA certificates in the format of kubeadm's
// discovery, sha256:…. It hashes the certificates in cluster-info, since kubeadm compares the
// hashes with these certificates. The request uses a connection that the kubeconfig trusts. The
// kubeconfig's own CA may be the CA of a proxy in front of the API server, so CACertHashes uses
// the kubeconfig's CA only if cluster-info has no CA.
func (c *Cluster) CACertHashes(ctx context.Context) ([]string, error) {
	info, err := c.clusterInfo(ctx)
	if err != nil || len(info.CACertHashes) > 0 {
		return info.CACertHashes, err
	}
	if c.config == nil {
		return nil, &NoClusterInfoError{}
	}
	config := rest.CopyConfig(c.config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, &ConfigError{Err: err}
	}
	found, err := PublicKeyHashes(config.CAData)
	if err != nil {
		return nil, &ConfigError{Err: fmt.Errorf("read the cluster's CA: %w", err)}
	}
	return found, nil
}

// PublicKeyHashes returns the PublicKeyHash of each of the PEM certificates.
func PublicKeyHashes(bundle []byte) ([]string, error) {
	var found []string
	for block, others := pem.Decode(bundle); block != nil; block, others = pem.Decode(others) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		found = append(found, PublicKeyHash(certificate))
	}
	if len(found) == 0 {
		return nil, errors.New("no PEM certificate in it")
	}
	return found, nil
}

// PublicKeyHash returns the hash of a certificate's public key in the format with which
// kubeadm pins a CA: sha256:….
func PublicKeyHash(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}
