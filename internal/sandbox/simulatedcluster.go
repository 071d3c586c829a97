package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
	clustersim "github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/sandbox/proxier"
)

// The versions of the programs that the simulated cluster's node will run.
const (
	simulatedKubernetes = clustersim.DefaultVersion
	simulatedContainerd = "2.2.1"
	// simulatedOlder is a version from which a node can be upgraded; it is only in the mirror.
	simulatedOlder = "1.35.4"
	// simulatedNodeGrace is shorter than Kubernetes' 50 s, so that a user need not
	// wait for long to join the machine again.
	simulatedNodeGrace = 5 * time.Second
)

// The files of a simulated cluster, in a sandbox's folder.
const (
	kubeconfigFile = "admin.conf"
	mirrorFolder   = "mirror"
)

// startSimulatedCluster starts a control plane in memory, and writes the programs that a simulated
// machine uses to join it.
func startSimulatedCluster(f folder, log *slog.Logger) (cluster *clustersim.Cluster, section string, err error) {
	mirror := f.file(mirrorFolder)
	for _, release := range []simulated.Release{
		{Kubernetes: simulatedKubernetes, Containerd: simulatedContainerd}, {Kubernetes: simulatedOlder},
	} {
		if err := simulated.WriteMirror(mirror, release); err != nil {
			return nil, "", err
		}
	}
	cluster, err = clustersim.Start(clustersim.Options{Version: simulatedKubernetes,
		NodeGrace: simulatedNodeGrace, Log: log})
	if err != nil {
		return nil, "", err
	}
	if err := errors.Join(cluster.Plant(kubeProxy), cluster.WriteKubeconfig(f.file(kubeconfigFile))); err != nil {
		cluster.Close()
		return nil, "", err
	}
	return cluster, joinSection(mirror), nil
}

// startProxier starts a stand-in for kube-proxy on the machine. The function stop ends it.
func startProxier(cluster *clustersim.Cluster, m *simulated.Machine, log *slog.Logger) (stop func(), err error) {
	kubeconfig, err := cluster.Kubeconfig("")
	if err != nil {
		return nil, err
	}
	if err := cluster.Plant(services); err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := proxier.Run(ctx, proxier.Options{Machine: m, Client: client, Write: proxierWrite}); err != nil {
			log.Error("the stand-in for kube-proxy has ended", "err", err)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}, nil
}

// proxierWrite is how long a write to HNS takes for the stand-in of kube-proxy: as long as the times that
// SIG Windows published for Windows Server 2022 suggest.
const proxierWrite = 1200 * time.Microsecond

// kubeProxy is the DaemonSet of kube-proxy in clusters with Windows nodes.
const kubeProxy = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy-windows, namespace: kube-system}
spec:
  selector: {matchLabels: {app: kube-proxy}}
  template:
    metadata: {labels: {app: kube-proxy}}
    spec: {nodeSelector: {kubernetes.io/os: windows}, containers: []}
`

// services are the Service that each cluster has, and one of an application with pods on another node.
const services = `
apiVersion: v1
kind: Service
metadata: {name: kubernetes, namespace: default}
spec: {clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1], ports: [{name: https, protocol: TCP, port: 443, targetPort: 6443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kubernetes, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}
addressType: IPv4
ports: [{name: https, protocol: TCP, port: 6443}]
endpoints: [{addresses: [192.168.122.1]}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: NodePort
  clusterIP: 10.96.0.20
  clusterIPs: [10.96.0.20]
  selector: {app: web}
  ports: [{name: http, protocol: TCP, port: 80, targetPort: 8080, nodePort: 30080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, protocol: TCP, port: 8080}]
endpoints:
- {addresses: [10.244.2.7], nodeName: linux-1, conditions: {ready: true, serving: true}}
- {addresses: [10.244.2.8], nodeName: linux-1, conditions: {ready: true, serving: true}}
`

// joinSection returns the part of a node file that `swdt join` uses.
func joinSection(mirror string) string {
	kubernetes := filepath.Join(mirror, "dl.k8s.io", simulatedKubernetes, "bin", "windows", "amd64")
	return strings.NewReplacer(
		"VERSION", simulatedKubernetes, "CONTAINERD", simulatedContainerd,
		"ARCHIVE", fmt.Sprintf("%q", filepath.Join(mirror, "github.com", "containerd", "containerd",
			"releases", "download",
			"v"+simulatedContainerd, "containerd-"+simulatedContainerd+"-windows-amd64.tar.gz")),
		"KUBELET", fmt.Sprintf("%q", filepath.Join(kubernetes, "kubelet.exe")),
		"KUBEADM", fmt.Sprintf("%q", filepath.Join(kubernetes, "kubeadm.exe")),
		"LOGRUNNER", fmt.Sprintf("%q", filepath.Join(kubernetes, "kube-log-runner.exe")),
		"KUBEPROXY", fmt.Sprintf("%q", filepath.Join(kubernetes, "kube-proxy.exe")),
	).Replace(joinSectionText)
}

const joinSectionText = `
  # What "swdt join" installs. These programs are made up, as the machine is; if you
  # remove a source, join downloads the real program from its project.
  kubernetes:
    version: VERSION
    containerd:
      version: CONTAINERD
      source: ARCHIVE
    kubelet:
      source: KUBELET
      kubeadmSource: KUBEADM
      logRunnerSource: LOGRUNNER
      kubeProxySource: KUBEPROXY
`
