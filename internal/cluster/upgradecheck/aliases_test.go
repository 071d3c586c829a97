package upgradecheck_test

import (
	"fmt"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// An alias may stand for a mapping, a list or a text, and << for the pairs of another mapping, which a pair beside it
// replaces.
func TestAliasesAreFollowed(t *testing.T) {
	const base = "base: &base {feature-gates: WinDSR=true}\n"
	for name, test := range map[string]struct {
		text string
		want string
	}{
		"a list":             {"x: &args [feature-gates=WinDSR=true]\nkubelet-arg: *args\n", "WinDSR"},
		"a text of a list":   {"x: &arg feature-gates=WinDSR=true\nkubelet-arg: [*arg]\n", "WinDSR"},
		"a mapping":          {base + "kubeletExtraArgs: *base\n", "WinDSR"},
		"a merged mapping":   {base + "kubeletExtraArgs: {<<: *base}\n", "WinDSR"},
		"merged mappings":    {base + "kubeletExtraArgs: {<<: [{v: '2'}, *base]}\n", "WinDSR"},
		"a replaced pair":    {base + "kubeletExtraArgs: {<<: *base, feature-gates: NodeSwap=true}\n", "NodeSwap"},
		"gates":              {"x: &gates {WinDSR: true}\nkind: KubeletConfiguration\nfeatureGates: *gates\n", "WinDSR"},
		"merged gates":       {"x: &gates {WinDSR: true}\nkind: KubeletConfiguration\nfeatureGates: {<<: *gates}\n", "WinDSR"},
		"a merged file":      {"x: &file {featureGates: {WinDSR: true}}\nkind: KubeletConfiguration\n<<: *file\n", "WinDSR"},
		"a value of a gate":  {"x: &on true\nkind: KubeletConfiguration\nfeatureGates: {WinDSR: *on}\n", "WinDSR"},
		"a list of v1beta4":  {"x: &arg {name: feature-gates, value: WinDSR=true}\nkubeletExtraArgs: [*arg]\n", "WinDSR"},
		"a merged list item": {"x: &arg {name: feature-gates, value: WinDSR=true}\nkubeletExtraArgs: [{<<: *arg}]\n", "WinDSR"},
		"a container": {"x: &args [--feature-gates=WinDSR=true]\ny: &c {command: [kube-proxy.exe], args: *args}\n" +
			"spec: {containers: [*c]}\n", "WinDSR"},
		"a list of gates": {"x: &gates [WinDSR=true]\nKubeproxy: {FeatureGates: *gates}\n", "WinDSR"},
	} {
		r := upgradecheck.NewReader(load(t))
		r.File("a.yaml", []byte(test.text))
		gates := map[string]string{}
		for _, s := range r.Settings {
			if s.Kind == upgradecheck.GateSetting {
				gates[s.Name] = s.Value
			}
		}
		if len(gates) != 1 || gates[test.want] != "true" {
			t.Errorf("%s: gates %v, want %s; settings %+v", name, gates, test.want, r.Settings)
		}
	}
}

// Aliases that lead into themselves, or that multiply, end.
func TestAliasesAreBounded(t *testing.T) {
	bomb := "a0: &a0 {kubelet-arg: [feature-gates=WinDSR=true]}\n"
	for i := range 20 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i, i, i, i, i)
	}
	merges := "m0: &m0 {a: 1}\n"
	for i := range 40 {
		merges += fmt.Sprintf("m%d: &m%d {<<: [*m%d, *m%d], k%d: 1}\n", i+1, i+1, i, i, i)
	}
	for name, text := range map[string]string{
		"a bomb":                   bomb,
		"a bomb of merges":         merges,
		"a list in itself":         "kubelet-arg: &a [*a]\n",
		"a mapping in itself":      "a: &a {<<: *a, b: *a, kubelet-arg: *a}\n",
		"a file in itself":         "kind: KubeletConfiguration\nlogging: &l {options: *l, featureGates: *l}\nfeatureGates: *l\n",
		"a list of items":          "kind: List\nitems: &i [{kind: List, items: *i}]\n",
		"containers in themselves": "spec: &s {containers: [*s, {args: *s}], nodeSelector: *s}\n",
	} {
		r := upgradecheck.NewReader(load(t))
		r.File("a.yaml", []byte(text))
		if len(r.Settings) > 5_000 || len(r.Unread) == 0 {
			t.Errorf("%s: %d settings, unread: %v", name, len(r.Settings), r.Unread)
		}
	}
}
