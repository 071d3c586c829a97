package join

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// credentials reports whether kubelet has everything that it needs to be the node: the files that
// kubeadm wrote for it, and its own credentials. The existence of the files is not enough: a file
// may be empty or full of zeros, since neither kubeadm nor kubelet waits until its files are on the
// disk, and the power may have been cut.
func credentials(ctx context.Context, n *node.Node) (bool, error) {
	conf, err := read(ctx, n, kubeletConf)
	if err != nil {
		return false, err
	}
	var kubeconfig struct {
		Kind  string
		Users []struct {
			User struct {
				Certificate     string `json:"client-certificate"`
				CertificateData []byte `json:"client-certificate-data"`
			}
		}
	}
	if yaml.Unmarshal(conf, &kubeconfig) != nil || kubeconfig.Kind != "Config" || len(kubeconfig.Users) == 0 {
		return false, nil
	}
	certificate := kubeconfig.Users[0].User.CertificateData
	if file := kubeconfig.Users[0].User.Certificate; file != "" {
		if certificate, err = read(ctx, n, withDrive(file)); err != nil {
			return false, err
		}
	}
	config, err := read(ctx, n, kubeletYAML)
	if err != nil {
		return false, err
	}
	var kubelet struct{ Kind string }
	if yaml.Unmarshal(config, &kubelet) != nil || kubelet.Kind != "KubeletConfiguration" {
		return false, nil
	}
	authority, err := read(ctx, n, clusterCA)
	return isPEM(certificate) && isPEM(authority), err
}

// read returns a file's content, or nil if the file does not exist.
func read(ctx context.Context, n *node.Node, path string) ([]byte, error) {
	content, err := smallfile.Read(ctx, n, path)
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

func isPEM(text []byte) bool {
	block, _ := pem.Decode(text)
	return block != nil
}

// withDrive returns a path with drive and backslashes, as Windows writes it, since kubelet
// also accepts /var/lib/….
func withDrive(path string) string {
	path = strings.ReplaceAll(path, "/", `\`)
	if strings.HasPrefix(path, `\`) {
		return `C:` + path
	}
	return path
}

// sameCluster returns an error if the machine's kubelet trusts the CA of another cluster, such as
// an earlier cluster at the same address. If the machine has no CA of a cluster, or if the CAs of
// this cluster are not known, sameCluster returns nil, since the machine may belong to this
// cluster.
func (j *joining) sameCluster(ctx context.Context, n *node.Node) error {
	hashes, err := j.clusterHashes(ctx)
	if err != nil || len(hashes) == 0 {
		return err
	}
	trusted, err := authorities(ctx, n)
	if err != nil || len(trusted) == 0 || preflight.SameAuthority(trusted, hashes) {
		return err
	}
	return errors.New("the machine is a node of another cluster, whose CA is not this one's: " +
		preflight.OtherClusterRemedy)
}

// authorities returns the hashes of the CAs that the machine's kubelet trusts; none if the machine
// has no CA.
func authorities(ctx context.Context, n *node.Node) ([]string, error) {
	bundle, err := read(ctx, n, clusterCA)
	if err != nil || !isPEM(bundle) {
		return nil, err
	}
	hashes, err := cluster.PublicKeyHashes(bundle)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's CA in %s: %w", clusterCA, err)
	}
	return hashes, nil
}

// clusterHashes returns the hashes of the cluster's CAs. Without access to the cluster, it
// returns the hash in the node file, or none if the node file has no hash.
func (j *joining) clusterHashes(ctx context.Context) ([]string, error) {
	if j.options.Cluster != nil {
		return j.options.Cluster.CACertHashes(ctx)
	}
	if hash := j.spec.Join.DiscoveryTokenCACertHash; hash != "" {
		return []string{hash}, nil
	}
	return nil, nil
}
