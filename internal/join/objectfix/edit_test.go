package objectfix

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/format/redact"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func table(t *testing.T) *kubesettings.Table {
	t.Helper()
	table, err := kubesettings.Load()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// removals returns the removals for an upgrade to 1.38.
func removals(t *testing.T, o *unstructured.Unstructured) []upgradecheck.Removal {
	t.Helper()
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	r := upgradecheck.NewReader(table(t))
	r.Documents(text, upgradecheck.Place{})
	target, err := upgradecheck.ParseTarget(table(t), "1.38", "", "")
	if err != nil {
		t.Fatal(err)
	}
	all, _ := upgradecheck.Removals(upgradecheck.Check(table(t), target, r.Facts))
	return all
}

const template = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: kube-proxy-windows, namespace: kube-system}\n" +
	"spec:\n  template:\n    spec:\n      nodeSelector: {kubernetes.io/os: windows}\n      containers:\n      - "

// Only the settings go: each form of a command, of a variable and of a text inside a ConfigMap.
func TestEdited(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		want   map[string]any // the fields that change
	}{
		"a gate among others": {template + "{name: a, image: a, command: [kube-proxy.exe], args: [--v=2, '--feature-gates=WinDSR=true,KubeProxyDrainingTerminatingNodes=true,X=y', --enable-dsr=true]}",
			map[string]any{"spec.template.spec.containers[a].args": []any{"--v=2", "--feature-gates=X=y", "--enable-dsr=true"}}},
		"a flag with its value behind it": {template + "{name: a, image: a, command: [kubelet.exe, --pod-infra-container-image, pause, --feature-gates, 'WinDSR=true', --v, '2']}",
			map[string]any{"spec.template.spec.containers[a].command": []any{"kubelet.exe", "--v", "2"}}},
		"several items": {template + "{name: a, image: a, command: [kube-proxy.exe, --feature_gates=WinDSR=true, --v=2, '--feature-gates=WinOverlay=true']}",
			map[string]any{"spec.template.spec.containers[a].command": []any{"kube-proxy.exe", "--v=2"}}},
		"a flag before an operator of the shell": {template + "{name: a, image: a, command: [cmd, /c, kubelet.exe, --pod-infra-container-image, '&&', echo, done]}",
			map[string]any{"spec.template.spec.containers[a].command": []any{"cmd", "/c", "kubelet.exe", "&&", "echo", "done"}}},
		"a script in an argument": {template + "{name: a, image: a, command: [powershell, -Command, \"C:\\\\k\\\\kube-proxy.exe --feature-gates=WinDSR=true --v=2\"]}",
			map[string]any{"spec.template.spec.containers[a].command": []any{"powershell", "-Command", `C:\k\kube-proxy.exe --v=2`}}},
		"variables": {template + "{name: kube-proxy, image: a, env: [{name: FEATURE_GATES, value: 'WinDSR=true'}, {name: KUBELET_ARGS, value: '--v=2 --cloud-config=x --register-node'}]}",
			map[string]any{"spec.template.spec.containers[kube-proxy].env[FEATURE_GATES].value": "",
				"spec.template.spec.containers[kube-proxy].env[KUBELET_ARGS].value": "--v=2 --register-node"}},
		"a configuration": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-proxy, namespace: kube-system}\ndata:\n  other: x\n  config.conf: \"# ours\\nkind: KubeProxyConfiguration\\n" +
			"featureGates:   # gates\\n  WinDSR: true\\n  WindowsGracefulNodeShutdown:  false # stays\\n\\nmode:   \\\"\\\"\\n\"",
			map[string]any{"data.config.conf": "# ours\nkind: KubeProxyConfiguration\nfeatureGates:   # gates\n  WindowsGracefulNodeShutdown:  false # stays\n\nmode:   \"\"\n"}},
		"a script": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata:\n  run.ps1: \"# start\\r\\nC:\\\\k\\\\kube-proxy.exe --feature-gates=WinDSR=true,WinOverlay=true --v=2\\r\\n\"",
			map[string]any{"data.run.ps1": "# start\r\nC:\\k\\kube-proxy.exe --v=2\r\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, test.object)
			before := o.DeepCopy()
			gone := removals(t, o)
			if len(gone) == 0 {
				t.Fatal("nothing is found")
			}
			changed, err := edited(table(t), o, gone)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]any{}
			for i, l := range leaves(changed) {
				if was := leaves(o)[i]; !same(was.value, l.value) {
					got[l.name] = l.value
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before.Object, o.Object); diff != "" {
				t.Errorf("the present object changed: %s", diff)
			}
		})
	}
}

// A place that cannot be changed alone is refused with the place.
func TestWhatIsNotEdited(t *testing.T) {
	for name, test := range map[string]struct{ object, want string }{
		"a computed value": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata:\n  run.ps1: \"$gates = @(\\\"WinDSR=true\\\")\\nC:\\\\k\\\\kube-proxy.exe --feature-gates=$gates\\n\"",
			"change data.run.ps1, line 1: "},
		"two variables of one name": {template + "{name: kube-proxy, image: a, env: [{name: FEATURE_GATES, value: 'WinDSR=true'}, {name: FEATURE_GATES, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}",
			"change spec.template.spec.containers[0].env[0].value: the container has two variables \"FEATURE_GATES\""},
		"a flag whose value begins args": {template + "{name: a, image: a, command: [kubelet.exe, --pod-infra-container-image], args: [pause, --v=2]}",
			"change spec.template.spec.containers[0].command[1]: the value of the flag is the first item of args"},
		"a quoted argument in a variable": {template + "{name: a, image: a, env: [{name: KUBELET_ARGS, value: \"--node-labels='a=b  c' --cloud-config=x\"}]}",
			"change spec.template.spec.containers[0].env[0].value: its arguments are quoted"},
		"an immutable ConfigMap": {"apiVersion: v1\nkind: ConfigMap\nimmutable: true\nmetadata: {name: a, namespace: b}\ndata:\n  run.ps1: \"C:\\\\k\\\\kube-proxy.exe --feature-gates=WinDSR=true\\n\"",
			"change immutable: "},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, test.object)
			_, err := edited(table(t), o, removals(t, o))
			var place *PlaceError
			if !errors.As(err, &place) || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A shown field has its lines, also those within an item, and no secret.
func TestShownFields(t *testing.T) {
	secrets, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := (&Fix{secrets: secrets}).field("args", []any{"--token=abcdef.0123456789abcdef", "one\n+ two"}, "$password = 'hunter2-invented'\nend\n")
	if want := []string{"one", "+ two"}; !slices.Equal(f.Before[1:], want) || len(f.After) != 2 || f.After[1] != "end" {
		t.Errorf("%q, %q", f.Before, f.After)
	}
	if all := strings.Join(append(f.Before, f.After...), " "); strings.Contains(all, "abcdef.0123") || strings.Contains(all, "hunter2") {
		t.Errorf("a secret is shown: %s", all)
	}
}

// The tools that would undo a change, by the marks that they leave on objects.
func TestSources(t *testing.T) {
	for metadata, want := range map[string]string{
		"labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: calico}":                      "the next `helm upgrade` of calico",
		"annotations: {'argocd.argoproj.io/tracking-id': 'windows:apps/DaemonSet:kube-system/kube-proxy-windows'}":            "application windows",
		"labels: {kustomize.toolkit.fluxcd.io/name: infra}":                                                                   "the Kustomization infra",
		"labels: {swdt.dev/network: calico}":                                                                                  "`swdt network install calico`",
		"annotations: {objectset.rio.cattle.io/owner-name: rke2-kube-proxy}":                                                  "the manifest rke2-kube-proxy",
		"labels: {addonmanager.kubernetes.io/mode: Reconcile}":                                                                "the addon manager",
		"ownerReferences: [{apiVersion: operator.tigera.io/v1, kind: Installation, name: default, uid: x, controller: true}]": "the controller of Installation default",
		"annotations: {meta.helm.sh/release-name: \"a\\nConfigMap b: unchanged\"}":                                            "of a ConfigMap b: unchanged would undo",
		"labels: {app.kubernetes.io/managed-by: someone}":                                                                     "",
	} {
		got := strings.Join(sources(object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, "+metadata+"}")), "; ")
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q", metadata, got)
		}
	}
}
