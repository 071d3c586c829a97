package kubeletconfig_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
)

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// row is a configuration as people have written it, and what kubelet makes of it: for each mistake,
// "ends" or "ignores", its line and its field.
type row struct {
	text string
	want []string
}

// files are files of --config. The decoder of kubelet 1.36.3 (DecodeKubeletConfiguration) was run
// on each of them, and refused exactly those that have a mistake that ends it.
func files() map[string]row {
	return map[string]row{
		"right": {header + "maxPods: 40\nevictionHard: {memory.available: 100Mi}\nsyncFrequency: 1m0s\n" +
			"logging: {format: json, flushFrequency: 5s}\nregisterWithTaints: [{key: os, value: windows, effect: NoSchedule}]\n", nil},
		"JSON": {`{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 40}`, nil},
		// opsnull/follow-me-install-kubernetes-cluster#458: nil is Go's word, a text to YAML.
		"nil as a mapping": {header + "evictionSoft: nil\n", []string{"ends 3 evictionSoft"}},
		// opsnull/follow-me-install-kubernetes-cluster#459
		"nil three times": {header + "evictionSoft: nil\nsystemReserved: nil\nkubeReserved: nil\n",
			[]string{"ends 3 evictionSoft", "ends 4 systemReserved", "ends 5 kubeReserved"}},
		// kubernetes/kubernetes#65455 and the like: numbers in quotes.
		"a number in quotes": {header + "maxPods: \"40\"\n", []string{"ends 3 maxPods"}},
		// kubernetes/kubernetes#121467: kubelet.conf, the kubeconfig, as --config.
		"a kubeconfig": {"apiVersion: v1\nkind: Config\nclusters: []\ncurrent-context: x\n",
			[]string{"ends 1 apiVersion", "ends 2 kind", "ignores 3 clusters", "ignores 4 current-context"}},
		"a version that does not exist": {"apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n",
			[]string{"ends 1 apiVersion"}},
		"no apiVersion": {"kind: KubeletConfiguration\nmaxPods: 3\n", []string{"ends 0 apiVersion"}},
		"no kind":       {"apiVersion: kubelet.config.k8s.io/v1beta1\n", []string{"ends 0 kind"}},
		// bottlerocket-os/bottlerocket#989
		"MaxPods": {header + "MaxPods: 30\n", []string{"ignores 3 MaxPods"}},
		// aquasecurity/kube-bench#1703
		"TLSCipherSuites": {header + "TLSCipherSuites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]\n",
			[]string{"ignores 3 TLSCipherSuites"}},
		"cgroupsPerQos": {header + "cgroupsPerQos: false\n", []string{"ignores 3 cgroupsPerQos"}},
		// The case of a name is checked at each level.
		"a field of a field": {header + "authentication: {Webhook: {enabled: true}, x509: {clientCAfile: c}}\n",
			[]string{"ignores 3 authentication.Webhook", "ignores 3 authentication.x509.clientCAfile"}},
		// kubernetes/kubernetes#84143: Kustomize needs metadata.
		"metadata": {header + "metadata: {name: k}\n", []string{"ignores 3 metadata"}},
		// A value of an unknown field may be anything; a mistake elsewhere still ends kubelet.
		"unknown and wrong": {header + "maxPod: x\nmaxPods: many\n", []string{"ignores 3 maxPod", "ends 4 maxPods"}},
		"twice":             {header + "maxPods: 3\nmaxPods: 4\n", []string{"ignores 4 maxPods"}},
		// kubeedge/kubeedge#1706 has the same field: a duration without a unit.
		"a duration without a unit": {header + "volumeStatsAggPeriod: 60\n", []string{"ends 3 volumeStatsAggPeriod"}},
		"a word as a duration":      {header + "syncFrequency: never\n", []string{"ends 3 syncFrequency"}},
		"a list as a text":          {header + "clusterDNS: 10.96.0.10\n", []string{"ends 3 clusterDNS"}},
		"a number as a limit":       {header + "evictionHard:\n  memory.available: 100\n", []string{"ends 4 evictionHard.memory.available"}},
		"yes is true":               {header + "failSwapOn: no\n", nil},
		"true in quotes":            {header + "failSwapOn: \"false\"\n", []string{"ends 3 failSwapOn"}},
		"too large":                 {header + "maxPods: 5000000000\n", []string{"ends 3 maxPods"}},
		"a fraction":                {header + "imageGCHighThresholdPercent: 85.5\n", []string{"ends 3 imageGCHighThresholdPercent"}},
		"a taint as on a command line": {header + "registerWithTaints:\n- os=windows:NoSchedule\n",
			[]string{"ends 4 registerWithTaints[0]"}},
		"feature gates as a text": {header + "featureGates: WindowsHostNetwork=true\n", []string{"ends 3 featureGates"}},
		"a gate as a text":        {header + "featureGates: {WindowsHostNetwork: \"true\"}\n", []string{"ends 3 featureGates.WindowsHostNetwork"}},
		"no value":                {header + "evictionSoft:\nmaxPods: null\n", nil},
		"empty":                   {"", []string{"ends 0 "}},
		"a list":                  {"- maxPods: 3\n", []string{"ends 0 "}},
		"a tab":                   {header + "logging:\n\tformat: json\n", []string{"ends 0 "}},
	}
}

// dropIns are files of --config-dir, judged in the same way by DecodeKubeletConfigurationIntoJSON,
// the merge and the decoding of mergeKubeletConfigurations.
func dropIns() map[string]row {
	return map[string]row{
		"right":                         {header + "maxPods: 40\n", nil},
		"a number in quotes":            {header + "maxPods: \"40\"\n", []string{"ends 3 maxPods"}},
		"a wrong value in another case": {header + "MaxPods: \"40\"\n", []string{"ignores 3 MaxPods", "ends 3 MaxPods"}},
		"another case":                  {header + "cgroupsPerQos: false\n", []string{"ignores 3 cgroupsPerQos"}},
		"unknown":                       {header + "maxPod: 40\n", []string{"ignores 3 maxPod"}},
		"twice":                         {header + "maxPods: 3\nmaxPods: 4\n", []string{"ends 4 maxPods"}},
		"removed":                       {header + "maxPods: null\n", nil},
		"another version":               {"apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n", []string{"ends 1 apiVersion"}},
	}
}

func TestCheck(t *testing.T) {
	for form, rows := range map[kubeletconfig.Form]map[string]row{kubeletconfig.File: files(), kubeletconfig.DropIn: dropIns()} {
		for name, row := range rows {
			t.Run(fmt.Sprint(form, " ", name), func(t *testing.T) {
				var got []string
				for _, m := range kubeletconfig.Check([]byte(row.text), form) {
					got = append(got, fmt.Sprintf("%s %d %s", map[bool]string{true: "ends", false: "ignores"}[m.Ends], m.Line, m.Field))
					if m.What == "" || m.Remedy == "" {
						t.Errorf("%+v lacks a text", m)
					}
				}
				if diff := cmp.Diff(row.want, got); diff != "" {
					t.Errorf("the mistakes differ (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A header of a request may be a token.
func TestNoMistakeQuotesAValue(t *testing.T) {
	const secret = "sWoRdFiSh"
	text := header + "staticPodURLHeader: {Authorization: " + secret + "}\nclusterDNS: " + secret + "\nmaxPods: " + secret + "\n"
	for _, m := range kubeletconfig.Check([]byte(text), kubeletconfig.File) {
		if strings.Contains(m.String(), secret) {
			t.Errorf("a value is in %s", m)
		}
	}
}

func TestMarshal(t *testing.T) {
	text, err := kubeletconfig.Marshal(map[string]any{"maxPods": 40, "kind": "Pod"})
	if err != nil || string(text) != header+"maxPods: 40\n" {
		t.Errorf("%s, %v", text, err)
	}
}
