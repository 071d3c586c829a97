package upgradecheck_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// Configurations that no version of the table breaks, and texts that only look like settings.
func ordinary() map[string]map[string]string {
	return map[string]map[string]string{
		"what kubeadm gives a Windows kubelet": {"config.yaml": `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
  x509: {clientCAFile: 'C:\etc\kubernetes\pki\ca.crt'}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 0s}}
cgroupDriver: cgroupfs
clusterDNS: [10.96.0.10]
containerRuntimeEndpoint: npipe:////./pipe/containerd-containerd
cpuManagerReconcilePeriod: 0s
evictionHard: {memory.available: 500Mi}
featureGates: {}
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
registerWithTaints: [{key: os, value: windows, effect: NoSchedule}]
resolvConf: ""
rotateCertificates: true
volumeStatsAggPeriod: 0s
`},
		"kubeadm's own kube-proxy for Linux": {"kube-proxy.yaml": `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: kube-proxy, namespace: kube-system}
  data:
    config.conf: |
      apiVersion: kubeproxy.config.k8s.io/v1alpha1
      kind: KubeProxyConfiguration
      clusterCIDR: 10.244.0.0/16
      clientConnection: {acceptContentTypes: "", kubeconfig: /var/lib/kube-proxy/kubeconfig.conf}
      mode: iptables
      winkernel: {enableDSR: false, sourceVip: ""}
- apiVersion: apps/v1
  kind: DaemonSet
  metadata: {name: kube-proxy, namespace: kube-system}
  spec:
    template:
      spec:
        nodeSelector: {kubernetes.io/os: linux}
        containers:
        - name: kube-proxy
          image: registry.k8s.io/kube-proxy:v1.37.2
          command: [/usr/local/bin/kube-proxy, --config=/var/lib/kube-proxy/config.conf, --hostname-override=$(NODE_NAME)]
        volumes: [{name: kube-proxy, configMap: {name: kube-proxy}}]
`},
		"another program's flags": {"operator.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: operator}
spec:
  template:
    spec:
      containers:
      - {name: operator, image: example.com/operator:v1, args: [--kubelet-service=kube-system/kubelet, --logtostderr=true, --log-dir=/logs]}
`, "aks.sh": "az aks create --network-plugin azure --pod-cidr 10.0.0.0/16 # kubelet\n"},
		"kube-log-runner's flags": {"restart.ps1": "$line = 'C:\\k\\kube-log-runner.exe --log-file=C:\\var\\log\\kubelet.log C:\\k\\kubelet.exe --config=C:\\k\\config.yaml'\n"},
		"texts that are looked for": {"patch.ps1": "# kube-proxy had --feature-gates=WinDSR=true\n" +
			"if ($gates -contains \"WinDSR=true\") { $words += '--enable-dsr=true' }\n" +
			"(Get-Content kubelet.ps1) -replace '--pod-infra-container-image=x', '' | Set-Content kubelet.ps1\n" +
			"Write-Host 'kubelet no longer has --cni-bin-dir'\n$env:Done=$true\n"},
		"a Secret": {"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  x: |\n    kubelet --feature-gates=NoSuchGate=true\n"},
	}
}

func TestOrdinaryConfigurationsGiveNoFinding(t *testing.T) {
	table := load(t)
	for name, files := range ordinary() {
		for _, kubernetes := range []string{"1.33", "1.36", "1.38"} {
			target, err := upgradecheck.ParseTarget(table, kubernetes, "", "ltsc2022")
			if err != nil {
				t.Fatal(err)
			}
			if got := checkFiles(t, target, table, files); len(got) > 0 {
				t.Errorf("%s, to %s: %s", name, kubernetes, strings.Join(got, "\n"))
			}
		}
	}
}

// swdt's own kube-proxy has no settings that a version refuses.
func TestOwnKubeProxy(t *testing.T) {
	table := load(t)
	r := upgradecheck.NewReader(table)
	for _, o := range cni.KubeProxy(cni.Wanted{Network: cni.Calico, KubeProxyImage: "sigwindowstools/kube-proxy:v1.37.2-calico-hostprocess"}) {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		r.Documents(text, upgradecheck.Place{})
	}
	target, err := upgradecheck.ParseTarget(table, "1.38", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := upgradecheck.Check(table, target, r.Facts); len(got) > 0 || len(r.Facts.Pods) != 1 {
		t.Errorf("%+v, %d pods", got, len(r.Facts.Pods))
	}
}

// The configurations that containerd itself generates give no finding for it.
func TestDefaultsOfContainerd(t *testing.T) {
	table := load(t)
	files, err := filepath.Glob("../../platform/simulated/containerd/default-*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "default-"), ".toml")
		r := upgradecheck.NewReader(table)
		r.Containerd(text, version, upgradecheck.Place{File: file})
		if diff := cmp.Diff([]upgradecheck.Finding(nil), upgradecheck.Check(table, upgradecheck.Target{}, r.Facts)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", file, diff)
		}
	}
}
