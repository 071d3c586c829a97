package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const kubeadm = "kubeadm"

const (
	serviceSubnet = "10.96.0.0/12"
	podSubnet     = "10.244.0.0/16"
	// advertised is the address behind the Service "kubernetes". kubeadm and the API server
	// refuse a loopback address for this purpose. Nothing uses the address, because the programs
	// and nodes of this cluster use the endpoint on loopback. So it is a reserved address without
	// a host (RFC 5737, TEST-NET-2), which also works without a network.
	advertised = "198.51.100.1"
)

// configuration is kubeadm's configuration. kubeadm's etcd and control-plane manifests are not
// used, so this configuration only determines certificates, kubeconfigs and the data for joining
// nodes. It selects elliptic-curve keys because creating them is much faster than creating RSA keys.
const configuration = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint:
  advertiseAddress: %[1]s
  bindPort: %[2]d
nodeRegistration:
  name: control-plane
  criSocket: unix:///none
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: %[3]q
kubernetesVersion: %[4]s
certificatesDir: %[5]q
controlPlaneEndpoint: %[6]s
encryptionAlgorithm: ECDSA-P256
networking:
  serviceSubnet: %[7]s
  podSubnet: %[8]s
apiServer:
  certSANs: [127.0.0.1, localhost]
`

// writeKubeadmConfigs writes two configurations. The one for this machine names the folder that
// has the certificates on this machine. The one for the cluster names the folder that has the
// certificates on every node, since a joining kubelet uses that path.
func (l layout) writeKubeadmConfigs(ctx context.Context, name string, p *ports) error {
	// Without a version, kubeadm requests the newest version from the internet.
	version, err := l.kubeadm(ctx, "version", "--output", "short")
	if err != nil {
		return err
	}
	for path, certificates := range map[string]string{l.localConfig(): l.pki(),
		l.clusterConfig(): "/etc/kubernetes/pki"} {
		text := fmt.Sprintf(configuration, advertised, p.apiServer, name, strings.TrimSpace(version), certificates,
			l.endpoint(p), serviceSubnet, podSubnet)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("write kubeadm's configuration: %w", err)
		}
	}
	return nil
}

// makeCredentials creates all certificates, then the kubeconfigs, whose certificates the CA signs.
func (l layout) makeCredentials(ctx context.Context) error {
	config := "--config=" + l.localConfig()
	if _, err := l.kubeadm(ctx, "init", "phase", "certs", "all", config); err != nil {
		return err
	}
	_, err := l.kubeadm(ctx, "init", "phase", "kubeconfig", "all", config, "--kubeconfig-dir="+l.state)
	return err
}

// upload writes into the cluster the objects that a joining node reads.
func (l layout) upload(ctx context.Context) error {
	config, admin := "--config="+l.clusterConfig(), "--kubeconfig="+l.kubeconfig("admin")
	if _, err := l.kubeadm(ctx, "init", "phase", "upload-config", "all", config, admin); err != nil {
		return err
	}
	_, err := l.kubeadm(ctx, "init", "phase", "bootstrap-token", config, admin, "--skip-token-print")
	return err
}

func (l layout) kubeadm(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, l.binary(kubeadm), args...)
	cmd.Dir = l.state
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubeadm %s: %w:\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
