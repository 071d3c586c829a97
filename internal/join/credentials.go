package join

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/preflight"
	"github.com/swdt-dev/swdt/internal/smallfile"
)

// credentials is whether kubelet has all that it needs to be the node: what kubeadm
// wrote for it, and credentials of its own. A file that is there may be empty or
// full of zeros: neither kubeadm nor kubelet waits until the disk has what they
// wrote, and the power may have been cut.
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

// read is smallfile.Read for which a missing file is an empty one.
func read(ctx context.Context, n *node.Node, path string) ([]byte, error) {
	content, err := smallfile.Read(ctx, n, path)
	if errors.Is(err, host.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

func isPEM(text []byte) bool {
	block, _ := pem.Decode(text)
	return block != nil
}

// withDrive is a path as Windows writes it: kubelet also takes /var/lib/….
func withDrive(path string) string {
	path = strings.ReplaceAll(path, "/", `\`)
	if strings.HasPrefix(path, `\`) {
		return `C:` + path
	}
	return path
}

// sameCluster refuses to go on with a machine that is a node of another cluster,
// such as one of before at the same address. A machine that has no CA of a
// cluster, or no longer, may be one of this.
func (j *joining) sameCluster(ctx context.Context, n *node.Node) error {
	hashes, err := j.clusterHashes(ctx)
	if err != nil || len(hashes) == 0 {
		return err
	}
	trusted, err := authorities(ctx, n)
	if err != nil || len(trusted) == 0 || preflight.SameAuthority(trusted, hashes) {
		return err
	}
	return errors.New("the machine is a node of another cluster, whose CA is not this one's: " + preflight.OtherClusterRemedy)
}

// authorities are the CAs that the machine's kubelet trusts, by their hashes. None:
// it has none, or no longer.
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

// clusterHashes are those of the CAs of the cluster at hand; without one, the
// node file's. None: nobody knows.
func (j *joining) clusterHashes(ctx context.Context) ([]string, error) {
	if j.options.Cluster != nil {
		return j.options.Cluster.CACertHashes(ctx)
	}
	if hash := j.spec.Join.DiscoveryTokenCACertHash; hash != "" {
		return []string{hash}, nil
	}
	return nil, nil
}
