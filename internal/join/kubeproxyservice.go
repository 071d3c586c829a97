package join

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
)

// PodNetwork has the properties of the HNS network of a node's pods that decide about kube-proxy's flags.
type PodNetwork struct {
	Type string // such as Overlay or L2Bridge
	// SourceVIP is the address of this node in an overlay network; "" if the network is no overlay, or has none yet.
	SourceVIP string
	// Subnet is the range of this node's pods in the network, such as 10.244.1.0/24; "" if it is unknown.
	Subnet string
}

// overlay is the type of an HNS network on which kube-proxy needs a source address: without one it ends
// (k8s.io/kubernetes v1.36.3, pkg/proxy/winkernel/proxier.go, "source-vip flag not set").
const overlay = "Overlay"

// network finds the pod network on the node. It reports whether the network has all that kube-proxy needs.
func (j *joining) network(ctx context.Context, n *node.Node) (PodNetwork, bool, error) {
	if j.options.FindPodNetwork == nil {
		return PodNetwork{}, false, nil
	}
	found, there, err := j.options.FindPodNetwork(ctx, n, j.choice.HNSNetwork)
	if err != nil {
		return PodNetwork{}, false, fmt.Errorf("look for the HNS network %s: %w", j.choice.HNSNetwork, err)
	}
	if there && j.reserves(found) {
		r, err := load(ctx, n)
		if err != nil {
			return PodNetwork{}, false, err
		}
		found.SourceVIP = r.SourceVIP.addressIn(found.Subnet)
	}
	return found, there && (!strings.EqualFold(found.Type, overlay) || found.SourceVIP != ""), nil
}

const sourceVIPFlag = "source-vip"

// networkOf returns the network for which a registered kube-proxy was given its flags.
func networkOf(commandLine string) PodNetwork {
	if address := commandline.Flag(commandLine, sourceVIPFlag); address != "" {
		return PodNetwork{Type: overlay, SourceVIP: address}
	}
	return PodNetwork{}
}

// registration returns the service kube-proxy for a network. It depends on the Host Network Service, if the node has
// that service: then the SCM starts that service first, and a restart of that service with its dependents restarts
// kube-proxy, too. kube-proxy compares its load balancers with HNS only at its start and at changes.
//
// Like the script of swdt's DaemonSet, it has no feature gates and no --config.
func (j *joining) registration(ctx context.Context, n *node.Node, network PodNetwork) (*agentv1.ServiceConfig, error) {
	name, err := j.nodeName(ctx, n)
	if err != nil {
		return nil, err
	}
	words, err := kubeletargs.LogRunnerWords(kubeletargs.Wish{Version: j.spec.Version, LogFile: kubeProxyLog,
		LogFileSize: j.spec.Kubelet.LogFileSize, LogFileAge: j.logFileAge()})
	if err != nil {
		return nil, err
	}
	words = append(words, kubeProxyExe, "--windows-service", "--v=2", "--proxy-mode=kernelspace",
		"--hostname-override="+name, "--kubeconfig="+kubeProxyConf, "--network-name="+j.choice.HNSNetwork)
	dsr, err := j.directReturn(ctx, n)
	if err != nil {
		return nil, err
	}
	if dsr {
		words = append(words, "--enable-dsr=true")
	}
	if strings.EqualFold(network.Type, overlay) {
		words = append(words, "--"+sourceVIPFlag+"="+network.SourceVIP)
	}
	config := &agentv1.ServiceConfig{
		Name: kubeProxyName, DisplayName: kubeProxyName, Description: "Kubernetes network proxy",
		CommandLine: commandline.Join(words...), StartType: agentv1.StartType_START_TYPE_AUTO,
		Recovery: kubeletRecovery(),
	}
	const hostNetworkService = "hns"
	is, err := service(ctx, n, hostNetworkService)
	if is != nil {
		config.Dependencies = []string{hostNetworkService}
	}
	return config, err
}

// directReturn reports whether kube-proxy may turn direct server return on: HNS has it since Windows build 17763.1554,
// and kube-proxy needs a feature gate for it before 1.33 (kubernetes/kubernetes#130876).
func (j *joining) directReturn(ctx context.Context, n *node.Node) (bool, error) {
	const firstBuild, firstRevision, firstMinor = 17763, 1554, 33
	facts, err := j.machine(ctx, n)
	if err != nil {
		return false, err
	}
	minor, err := kubeletMinor(j.spec)
	if err != nil {
		return false, err
	}
	buildText, revisionText, _ := strings.Cut(facts.GetBuild(), ".")
	build, _ := strconv.Atoi(buildText)
	revision, _ := strconv.Atoi(revisionText)
	return minor >= firstMinor && (build > firstBuild || build == firstBuild && revision >= firstRevision), nil
}

// kubeconfig returns the kubeconfig of the account of kube-proxy, whose rights are those of system:node-proxier.
func (j *joining) kubeconfig(ctx context.Context) ([]byte, error) {
	token, ca, err := j.options.Cluster.KubeProxyToken(ctx)
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "cluster",
		"clusters": []any{map[string]any{"name": "cluster", "cluster": map[string]any{
			"certificate-authority-data": ca, "server": j.choice.Server}}},
		"contexts": []any{map[string]any{"name": "cluster", "context": map[string]any{
			"cluster": "cluster", "user": kubeProxyName}}},
		"users": []any{map[string]any{"name": kubeProxyName, "user": map[string]any{"token": token}}},
	})
}

// makeLogFolder makes the folder of a log, which kube-log-runner does not make.
func (j *joining) makeLogFolder(ctx context.Context, n *node.Node, path string) error {
	there, err := smallfile.Exists(ctx, n, path)
	if err != nil || there {
		return err
	}
	err = update(ctx, n, func(r *record) {
		if !r.folder(path) {
			r.Folders = append(r.Folders, folderRecord{Path: path})
		}
	})
	if err != nil {
		return err
	}
	if _, err := n.Files.MakeFolder(ctx, &agentv1.MakeFolderRequest{Path: path,
		Sddl: (&folders{j}).security(path)}); err != nil {
		return fmt.Errorf("make %s: %w", path, err)
	}
	return nil
}
