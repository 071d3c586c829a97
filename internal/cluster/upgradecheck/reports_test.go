package upgradecheck_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// checkFiles returns the findings for a folder with these files, as lines.
func checkFiles(t *testing.T, target upgradecheck.Target, table *kubesettings.Table, files map[string]string) []string {
	t.Helper()
	folder := fstest.MapFS{}
	for name, text := range files {
		folder[name] = &fstest.MapFile{Data: []byte(text)}
	}
	r := upgradecheck.NewReader(table)
	if err := r.Folder(folder, ""); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range upgradecheck.Check(table, target, r.Facts) {
		for _, place := range f.Places {
			lines = append(lines, fmt.Sprintf("%s %s: %s @ %s: %s", f.Severity, f.Effect, f.Rule, place, f.Evidence))
		}
		if f.Remedy == "" || f.Source == "" || f.What == "" {
			t.Errorf("the finding lacks a part: %+v", f)
		}
	}
	return lines
}

func load(t *testing.T) *kubesettings.Table {
	t.Helper()
	table, err := kubesettings.Load()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// broken is a configuration that an upgrade breaks, in swdt's own words, in the form in which the named project has it.
type broken struct {
	name, source string
	to           string // Kubernetes, or containerd if it begins with 2
	files        map[string]string
	want         []string
}

// Public reports of broken upgrades, and public configurations that 1.35 or 1.38 breaks.
func reports() []broken {
	return []broken{
		{
			name: "AKS: a gate is locked", source: "https://github.com/Azure/AgentBaker/pull/6925", to: "1.34",
			files: map[string]string{"kubeclusterconfig.json": `{
  "Kubernetes": {
    "Kubeproxy": {"FeatureGates": ["WinDSR=true", "WinOverlay=false"], "ConfigPath": "C:\\k\\"},
    "Kubelet": {"ConfigArgs": ["--cloud-provider=external", "--register-with-taints="]}
  }
}`},
			want: []string{
				"error exits: gate-locked @ kubeclusterconfig.json:3: --feature-gates=WinOverlay=false",
				"info deprecated: gate-going @ kubeclusterconfig.json:3: --feature-gates=WinDSR=true",
			},
		},
		{
			name: "RKE2: a removed flag of kubelet", source: "https://github.com/rancher/rke2/issues/9591", to: "1.34.3",
			files: map[string]string{"config.yaml": "kubelet-arg:\n- cloud-provider=external\n- cloud-config=C:\\etc\\vsphere.conf\n"},
			want:  []string{`error exits: flag-unknown @ config.yaml:3: --cloud-config=C:\etc\vsphere.conf`},
		},
		{
			name: "sig-windows-tools: a flag in the wrapper's script", to: "1.35",
			source: "https://github.com/kubernetes-sigs/sig-windows-tools/pull/397",
			files: map[string]string{"StartKubelet.ps1": "$words = (Get-Content -Path /var/lib/kubelet/kubeadm-flags.env).Trim('\"')\n" +
				"$start = \"C:\\k\\kubelet.exe $words --config=/var/lib/kubelet/config.yaml --pod-infra-container-image=`\"example.com/pause:3.9`\" --resolv-conf=`\"`\"\"\n" +
				"Invoke-Expression $start\n"},
			want: []string{"error exits: flag-unknown @ StartKubelet.ps1:2: --pod-infra-container-image"},
		},
		{
			name: "CAPZ: kubeletExtraArgs of a template", to: "1.35.0",
			source: "https://github.com/kubernetes-sigs/cluster-api-provider-azure/pull/5956",
			files: map[string]string{"template.yaml": `apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: windows, namespace: default}
spec:
  template:
    spec:
      joinConfiguration:
        nodeRegistration:
          criSocket: npipe:////./pipe/containerd-containerd
          kubeletExtraArgs:
            cloud-provider: external
            pod-infra-container-image: example.com/pause:3.9
`},
			want: []string{"error exits: flag-unknown @ template.yaml:12, KubeadmConfigTemplate default/windows, " +
				"spec.template.spec.joinConfiguration.nodeRegistration.kubeletExtraArgs.pod-infra-container-image: " +
				"--pod-infra-container-image=example.com/pause:3.9"},
		},
		{
			name: "klog's flags", source: "https://github.com/kubernetes-sigs/sig-windows-tools/issues/259", to: "1.33",
			files: map[string]string{"run-kubelet.ps1": "& C:\\k\\kubelet.exe --config=C:\\k\\kubelet.yaml --log-dir=C:\\var\\log\\kubelet --logtostderr=false\n"},
			want: []string{"error exits: flag-unknown @ run-kubelet.ps1:1: --log-dir",
				"error exits: flag-unknown @ run-kubelet.ps1:1: --logtostderr"},
		},
		{
			name: "a gate that an image's script set", source: "https://github.com/kubernetes-sigs/sig-windows-tools/issues/223", to: "1.33",
			files: map[string]string{"start.ps1": "$words = @('--proxy-mode=kernelspace', '--feature-gates=WinOverlay=true,IPv6DualStack=false')\n" +
				"& /hpc/kube-proxy/kube-proxy.exe $words\n"},
			want: []string{"error exits: gate-unknown @ start.ps1:1: IPv6DualStack=false",
				"info deprecated: gate-going @ start.ps1:1: WinOverlay=true"},
		},
		{
			name: "sig-windows-tools' image for Calico", to: "1.38.0-beta.0",
			source: "https://github.com/kubernetes-sigs/sig-windows-tools/blob/401ee6f/hostprocess/calico/kube-proxy/kube-proxy.yml",
			files: map[string]string{"kube-proxy.yml": `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy-windows, namespace: kube-system}
spec:
  template:
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers:
      - name: kube-proxy
        image: docker.io/sigwindowstools/kube-proxy:v1.37.2-calico-hostprocess
        args: ["$env:CONTAINER_SANDBOX_MOUNT_POINT/kube-proxy/start.ps1"]
`},
			want: []string{
				"error exits: gate-unknown @ kube-proxy.yml:9, DaemonSet kube-system/kube-proxy-windows, spec.template.spec.containers[0]: WinDSR=true",
				"error exits: gate-unknown @ kube-proxy.yml:9, DaemonSet kube-system/kube-proxy-windows, spec.template.spec.containers[0]: WinOverlay=true",
			},
		},
		{
			name: "WMCO: kube-proxy's configuration file", to: "1.38",
			source: "https://github.com/openshift/windows-machine-config-operator/blob/0be4b9ccb/pkg/nodeconfig/payload/payload.go",
			files: map[string]string{"kube-proxy.conf": `kind: KubeProxyConfiguration
apiVersion: kubeproxy.config.k8s.io/v1alpha1
featureGates:
  WinDSR: true
  WinOverlay: true
winkernel:
  enableDSR: true
  networkName: OVNKubernetesHybridOverlayNetwork
`},
			want: []string{"error exits: gate-unknown @ kube-proxy.conf:4: featureGates.WinDSR: true",
				"error exits: gate-unknown @ kube-proxy.conf:5: featureGates.WinOverlay: true"},
		},
		{
			name: "RKE2: a gate of kube-proxy", source: "https://github.com/rancher/rke2/blob/6ce1a80/pkg/executor/pebinary/pebinary.go", to: "1.38",
			files: map[string]string{"50-windows.yaml": "kube-proxy-arg: feature-gates=WinDSR=true\n"},
			want:  []string{"error exits: gate-unknown @ 50-windows.yaml:1: --feature-gates=WinDSR=true"},
		},
		{
			name: "Calico's installer appends to the service's path on EKS", to: "1.38",
			source: "https://github.com/projectcalico/calico/blob/87c1592/node/windows-packaging/install-calico-windows.ps1",
			files: map[string]string{"install.ps1": `function Add-Dsr {
  $line = (Get-CimInstance win32_service -Filter 'name="kube-proxy"').PathName
  if ($line -like "*--enable-dsr=true*") { return }
  $line += " --enable-dsr=true --feature-gates=WinDSR=true"
}
`},
			want: []string{"error exits: gate-unknown @ install.ps1:4: WinDSR=true"},
		},
		{
			name: "GCE's scripts", source: "https://github.com/kubernetes/kubernetes/pull/142125", to: "1.38",
			files: map[string]string{"util.sh": "function windows-kubeproxy-flags {\n  if [[ $DSR == true ]]; then\n" +
				"    flags+=\" --feature-gates=WinDSR=true --enable-dsr=true \"\n  fi\n}\n"},
			want: []string{"error exits: gate-unknown @ util.sh:3: WinDSR=true"},
		},
		{
			name: "k0s: a worker profile", source: "https://docs.k0sproject.io/stable/worker-node-config/", to: "1.38",
			files: map[string]string{"k0s.yaml": `apiVersion: k0s.k0sproject.io/v1beta1
kind: ClusterConfig
metadata: {name: k0s}
spec:
  workerProfiles:
  - name: windows
    values:
      maxPods: 40
      featureGates: {NodeSwap: true}
`},
			want: []string{"error exits: gate-unknown @ k0s.yaml:9, ClusterConfig k0s, spec.workerProfiles[0].values: featureGates.NodeSwap: true"},
		},
		{
			name: "kubeadm 1.37 writes a mode of Linux", source: "https://github.com/kubernetes/kubernetes/pull/139777", to: "1.37",
			files: map[string]string{"objects.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system}
data:
  config.conf: |-
    apiVersion: kubeproxy.config.k8s.io/v1alpha1
    kind: KubeProxyConfiguration
    mode: iptables
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy-windows, namespace: kube-system}
spec:
  template:
    spec:
      os: {name: windows}
      containers:
      - name: kube-proxy
        image: example.com/kube-proxy:v1.36.3
        command: [kube-proxy.exe, --config=/mounts/kube-proxy/config.conf]
      volumes: [{name: config, configMap: {name: kube-proxy}}]
`},
			want: []string{"error exits: proxy-mode @ objects.yaml:8, ConfigMap kube-system/kube-proxy, data.config.conf: mode: iptables"},
		},
		{
			name: "the folder of CNI plugins", source: "https://github.com/containerd/containerd/blob/v2.4.2/RELEASES.md", to: "2.4",
			files: map[string]string{"config.toml": "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.cni]\n  bin_dir = 'C:\\opt\\cni\\bin'\n  conf_dir = 'C:\\etc\\cni\\net.d'\n"},
			want:  []string{`error ignored: containerd-config-key @ config.toml:3: cni.bin_dir = C:\opt\cni\bin`},
		},
		{
			name: "mirrors beside config_path", source: "https://github.com/containerd/containerd/blob/v2.4.2/docs/hosts.md", to: "2.3",
			files: map[string]string{"config.toml": "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.registry]\n  config_path = 'C:\\hosts'\n" +
				"  [plugins.'io.containerd.grpc.v1.cri'.registry.mirrors.'docker.io']\n    endpoint = ['https://mirror.example.com']\n"},
			want: []string{"error exits: containerd-config-key @ config.toml:4: registry.mirrors beside registry.config_path"},
		},
		{
			name: "a version of the configuration that is too new", to: "2.2",
			source: "https://github.com/containerd/containerd/blob/v2.4.2/docs/man/containerd-config.toml.5.md",
			files:  map[string]string{"config.toml": "version = 4\n[plugins.'io.containerd.server.v1.grpc']\n"},
			want:   []string{"error exits: containerd-config-version @ config.toml:1: version = 4"},
		},
	}
}

func TestReportsOfBrokenUpgradesAreFound(t *testing.T) {
	table := load(t)
	for _, test := range reports() {
		t.Run(test.name, func(t *testing.T) {
			kubernetes, containerd := test.to, ""
			if test.to[0] == '2' {
				kubernetes, containerd = "", test.to
			}
			target, err := upgradecheck.ParseTarget(table, kubernetes, containerd, "")
			if err != nil {
				t.Fatal(err)
			}
			got := checkFiles(t, target, table, test.files)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.source, diff)
			}
		})
	}
}
