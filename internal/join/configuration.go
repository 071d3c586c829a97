package join

import (
	"context"
	"fmt"
	"net"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/node"
)

// joinConfiguration has the fields of kubeadm's JoinConfiguration that swdt sets. These fields are
// the same in v1beta2 to v1beta4. The configuration has no taints, labels and flags, since kubeadm
// stores these in files that would keep the old values after a change of the node file.
type joinConfiguration struct {
	APIVersion       string           `json:"apiVersion"`
	Kind             string           `json:"kind"`
	Discovery        discovery        `json:"discovery"`
	NodeRegistration nodeRegistration `json:"nodeRegistration"`
}

type discovery struct {
	BootstrapToken bootstrapToken `json:"bootstrapToken"`
}

type bootstrapToken struct {
	Token             string   `json:"token"`
	APIServerEndpoint string   `json:"apiServerEndpoint"`
	CACertHashes      []string `json:"caCertHashes"`
}

type nodeRegistration struct {
	Name                  string   `json:"name"`
	CRISocket             string   `json:"criSocket"`
	IgnorePreflightErrors []string `json:"ignorePreflightErrors,omitempty"`
}

// configuration returns the input of kubeadm join. It contains the token.
func (s *kubeadmJoin) configuration(ctx context.Context, n *node.Node, token string) ([]byte, error) {
	minor, err := kubeletMinor(s.spec)
	if err != nil {
		return nil, err
	}
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return nil, err
	}
	hashes, err := s.caCertHashes(ctx)
	if err != nil {
		return nil, err
	}
	content, err := yaml.Marshal(joinConfiguration{
		APIVersion: "kubeadm.k8s.io/" + configurationVersion(minor),
		Kind:       "JoinConfiguration",
		Discovery:  discovery{bootstrapToken{Token: token, APIServerEndpoint: s.endpoint(), CACertHashes: hashes}},
		NodeRegistration: nodeRegistration{
			Name: name, CRISocket: kubeletargs.RuntimeEndpoint,
			IgnorePreflightErrors: s.spec.Join.IgnorePreflightErrors,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("write kubeadm's configuration: %w", err)
	}
	return content, nil
}

// configurationVersion returns the newest version of JoinConfiguration that a kubeadm of
// this minor version reads.
func configurationVersion(minor int) string {
	switch {
	case minor >= 31:
		return "v1beta4"
	case minor >= 22:
		return "v1beta3"
	}
	return "v1beta2"
}

func (s *kubeadmJoin) caCertHashes(ctx context.Context) ([]string, error) {
	if hash := s.spec.Join.DiscoveryTokenCACertHash; hash != "" {
		return []string{hash}, nil
	}
	return s.options.Cluster.CACertHashes(ctx)
}

// withPort returns the endpoint of a node file with a port. If the endpoint has no port,
// withPort adds the API server's usual one.
func withPort(endpoint string) string {
	if _, _, err := net.SplitHostPort(endpoint); err == nil || endpoint == "" {
		return endpoint
	}
	return net.JoinHostPort(strings.Trim(endpoint, "[]"), "6443")
}
