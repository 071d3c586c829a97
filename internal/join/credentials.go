package join

import (
	"context"
	"encoding/pem"
	"errors"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
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
