package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
)

// clusterFolder is the control plane's state within a sandbox's folder.
const clusterFolder = "cluster"

// clusterEndLimit bounds the time in which a control plane must end. The limit is short, since
// the processes are killed.
const clusterEndLimit = 10 * time.Second

// The versions of the lab's programs with which a node joins.
const (
	labKubernetes = "1.36.3"
	labContainerd = "1.7.12"
)

// nodePrograms are the paths of the lab's Windows programs.
type nodePrograms struct{ containerd, kubelet, kubeadm, logRunner, kubeProxy string }

func nodeProgramsIn(lab string) nodePrograms {
	node := func(name string) string { return filepath.Join(lab, "node", name+"-"+labKubernetes+".exe") }
	return nodePrograms{
		containerd: filepath.Join(lab, "containerd-"+labContainerd+".exe"),
		kubelet:    node("kubelet"), kubeadm: node("kubeadm"), logRunner: node("kube-log-runner"),
		kubeProxy: node("kube-proxy"),
	}
}

// checkCluster returns an error if this machine lacks something that a control plane, or a node
// that joins it, needs. It runs before the sandbox starts.
func checkCluster() error {
	binaries, err := controlplane.DefaultBinaries()
	if err != nil {
		return err
	}
	if err := controlplane.Check(binaries); err != nil {
		return err
	}
	programs := nodeProgramsIn(filepath.Dir(binaries))
	for _, path := range []string{programs.containerd, programs.kubelet, programs.kubeadm, programs.logRunner,
		programs.kubeProxy} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("a node has nothing to join with: %w: run `make lab` in a clone of swdt (a quarter of "+
				"an hour the first time)", err)
		}
	}
	return nil
}

// wineJoinSection returns the part of a Wine node's file that `swdt join` uses.
func wineJoinSection(name string) (string, error) {
	binaries, err := controlplane.DefaultBinaries()
	if err != nil {
		return "", err
	}
	programs := nodeProgramsIn(filepath.Dir(binaries))
	return strings.NewReplacer(
		"CONTAINERDVERSION", labContainerd, "VERSION", labKubernetes,
		"ARCHIVE", strconv.Quote(programs.containerd), "KUBELET", strconv.Quote(programs.kubelet),
		"KUBEADM", strconv.Quote(programs.kubeadm), "LOGRUNNER", strconv.Quote(programs.logRunner),
		"KUBEPROXY", strconv.Quote(programs.kubeProxy),
		"NODENAME", strconv.Quote(nodeName(name)),
	).Replace(wineJoinSectionText), nil
}

// nodeName converts a sandbox's name to the name of its Node. It does not use the host name,
// which all prefixes of a machine share.
func nodeName(name string) string {
	return strings.Trim(strings.ToLower(strings.ReplaceAll(name, "_", "-")), "-")
}

const wineJoinSectionText = `
  # What "swdt join" installs: real programs, which lab/build.sh built for a node
  # under Wine. That script lists the differences from the published programs.
  kubernetes:
    version: VERSION
    containerd:
      version: CONTAINERDVERSION
      source: ARCHIVE
    kubelet:
      source: KUBELET
      kubeadmSource: KUBEADM
      logRunnerSource: LOGRUNNER
      kubeProxySource: KUBEPROXY
      # The node uses this machine's disk, which may be fuller than a node's should be.
      configPatch: {evictionHard: {imagefs.available: 1%, nodefs.available: 1%}}
    join:
      nodeName: NODENAME
`

// startCluster starts a real control plane for a sandbox's node to join.
func startCluster(ctx context.Context, f folder, name string, log *slog.Logger) (*controlplane.ControlPlane, error) {
	binaries, err := controlplane.DefaultBinaries()
	if err != nil {
		return nil, err
	}
	log.Info("starting a control plane", "programs", binaries)
	cluster, err := controlplane.Start(ctx, controlplane.Options{
		Binaries: binaries, State: f.file(clusterFolder), Name: name,
	})
	if err != nil {
		return nil, err
	}
	log.Info("the control plane is ready", "server", cluster.Server(), "logs", cluster.Logs())
	go func() {
		select {
		case <-cluster.Died():
			log.Error("the control plane has ended", "err", cluster.Err())
		case <-ctx.Done():
		}
	}()
	return cluster, nil
}

func stopCluster(cluster *controlplane.ControlPlane, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), clusterEndLimit)
	defer cancel()
	if err := cluster.Stop(ctx); err != nil {
		log.Error("end the control plane", "err", err)
	}
}
