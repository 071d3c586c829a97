package simulated

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kubeadmUpgrade imitates kubeadm upgrade node phase kubelet-config, with its flag --dry-run, of 1.31 and newer
// (cmd/kubeadm/app/cmd/upgrade/node.go, phases/upgrade/postupgrade.go and util/dryrun/dryrun.go of v1.36.3): as the node's
// own user, it reads kubeadm-config and kubelet-config, and writes config.yaml. In a dry run it prints that file as it
// would be, and writes it into the folder of KUBEADM_UPGRADE_DRYRUN_DIR or into a new one below \etc\kubernetes\tmp.
func (c component) kubeadmUpgrade(ctx context.Context) int {
	if !slices.Equal(c.p.Args[:min(4, len(c.p.Args))], []string{"upgrade", "node", "phase", "kubelet-config"}) {
		fmt.Fprintln(c.p.Stderr, "error: the simulated kubeadm has no other part of upgrade than node phase kubelet-config")
		return kubeadmFailed
	}
	if err := c.upgradeKubeletConfig(ctx); err != nil {
		fmt.Fprintf(c.p.Stderr, "error: %v\nTo see the stack trace of this error execute with --v=5 or higher\n", err)
		return kubeadmFailed
	}
	return 0
}

func (c component) upgradeKubeletConfig(ctx context.Context) error {
	j := &kubeadmJoin{p: c.p, version: c.version, caPath: kubernetesFolder + `\pki\ca.crt`}
	text, err := c.p.p.m.ReadFile(kubeletConf)
	if err != nil {
		return fmt.Errorf("couldn't create a Kubernetes client from file %q: failed to load admin kubeconfig: open %s: "+
			"The system cannot find the file specified", kubeletConf, kubeletConf)
	}
	credentials, err := parseKubeconfig(text)
	if err != nil {
		return err
	}
	bundle, err := c.p.p.m.ReadFile(credentials.certificate)
	if err != nil {
		return err
	}
	certificate, err := tls.X509KeyPair(bundle, bundle)
	if err != nil {
		return err
	}
	j.client = c.p.newAPIClient(credentials.server, credentials.ca, "", certificate)
	defer j.close()
	fmt.Fprintln(c.p.Stdout, `[upgrade] Reading configuration from the "kubeadm-config" ConfigMap in namespace `+
		`"kube-system"...`)
	if _, err := j.client.configMap(ctx, "kube-system", "kubeadm-config"); err != nil {
		return fmt.Errorf("unable to fetch the kubeadm-config ConfigMap: failed to get config map: %w", err)
	}
	config, err := j.kubeletConfig(ctx)
	if err != nil {
		return err
	}
	if _, minor := versionNumbers(j.version); minor >= 34 {
		config["containerRuntimeEndpoint"] = defaultSocket
	}
	content, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	if err := j.writeUpgraded(content); err != nil {
		return err
	}
	fmt.Fprintln(c.p.Stdout, "[upgrade/kubelet-config] The kubelet configuration for this node was successfully upgraded!")
	return nil
}

// writeUpgraded keeps a copy of config.yaml and replaces it, or does in a dry run as the real one.
func (j *kubeadmJoin) writeUpgraded(content []byte) error {
	const stamp = `\tmp\kubeadm-kubelet-config-2026-01-01-00-00-00`
	if !slices.Contains(j.p.Args, "--dry-run") {
		before, err := j.p.p.m.ReadFile(kubeletFolder + `\config.yaml`)
		if err != nil {
			return fmt.Errorf("error backing up the kubelet config file: %w", err)
		}
		copied := kubernetesFolder + stamp + `\config.yaml`
		fmt.Fprintf(j.p.Stdout, "[upgrade] Backing up kubelet config file to %s\n", copied)
		if err := j.write(copied, before); err != nil {
			return err
		}
		return j.write(kubeletFolder+`\config.yaml`, content)
	}
	folder := kubernetesFolder + `\tmp\kubeadm-upgrade-node-dryrun1`
	for _, variable := range j.p.Environment {
		if name, value, _ := strings.Cut(variable, "="); name == "KUBEADM_UPGRADE_DRYRUN_DIR" && value != "" {
			folder = windowsPath(value)
		}
	}
	if err := j.p.Platform.Files.MakeFolder(folder + stamp); err != nil {
		return err
	}
	fmt.Fprintf(j.p.Stdout, "[dryrun] Would back up kubelet config file to %s\n", folder+stamp+`\config.yaml`)
	if err := j.write(folder+`\config.yaml`, content); err != nil {
		return err
	}
	fmt.Fprintf(j.p.Stdout, "[dryrun] Would write file \"/var/lib/kubelet/config.yaml\" with content:\n%s", content)
	return nil
}
