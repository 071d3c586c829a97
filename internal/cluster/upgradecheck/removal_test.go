package upgradecheck_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// A setting goes from the nodes and the live objects that have it. A file with an object, the running configuration and a
// script in an image stay, and so does what only a later version refuses.
func TestRemovals(t *testing.T) {
	table, err := kubesettings.Load()
	if err != nil {
		t.Fatal(err)
	}
	target, err := upgradecheck.ParseTarget(table, "1.38", "", "")
	if err != nil {
		t.Fatal(err)
	}
	r := upgradecheck.NewReader(table)
	service := upgradecheck.Place{Node: "win-1", Field: "service kube-proxy"}
	r.CommandLine(kubesettings.KubeProxy, `C:\k\kube-proxy.exe --feature-gates=WinDSR=true,WinOverlay=false`, service)
	r.CommandLine(kubesettings.Kubelet, `C:\k\kubelet.exe --pod-infra-container-image=pause --v=2`, upgradecheck.Place{Node: "win-1", Field: "service kubelet"})
	r.Config(kubesettings.Kubelet, []byte("featureGates: {WinDSR: true}\n"), upgradecheck.Effective, upgradecheck.Place{Node: "win-1", Field: "configz"})
	daemonSet := []byte("kind: DaemonSet\nmetadata: {name: kube-proxy}\nspec: {template: {spec: {nodeSelector: {kubernetes.io/os: windows}, " +
		"containers: [{name: a, image: a, command: [kube-proxy.exe, '--feature-gates=WinDSR=true']}]}}}\n")
	r.Documents(daemonSet, upgradecheck.Place{})
	r.Documents(daemonSet, upgradecheck.Place{File: "a.yaml"})
	removals, left := upgradecheck.Removals(upgradecheck.Check(table, target, r.Facts))
	want := []upgradecheck.Removal{
		{Node: "win-1", Program: kubesettings.Kubelet, Kind: upgradecheck.FlagSetting, Name: "pod-infra-container-image"},
		{Node: "win-1", Program: kubesettings.KubeProxy, Kind: upgradecheck.GateSetting, Name: "WinDSR"},
		{Object: "DaemonSet kube-proxy", Program: kubesettings.KubeProxy, Kind: upgradecheck.GateSetting, Name: "WinDSR"},
		{Node: "win-1", Program: kubesettings.KubeProxy, Kind: upgradecheck.GateSetting, Name: "WinOverlay"},
	}
	if diff := cmp.Diff(want, removals); diff != "" {
		t.Error(diff)
	}
	var places []string
	for _, f := range left {
		for _, p := range f.Places {
			places = append(places, f.Setting.Name+" @ "+p.String())
		}
	}
	slices.Sort(places)
	if diff := cmp.Diff([]string{"WinDSR @ a.yaml:3, DaemonSet kube-proxy, spec.template.spec.containers[0].command[1]", "WinDSR @ node win-1, configz"}, places); diff != "" {
		t.Error(diff)
	}
}

// Arguments without a command go to the program of the image, and variables whose names say so to the program that they,
// the container or its image name.
func TestArgumentsInOtherPlaces(t *testing.T) {
	table, err := kubesettings.Load()
	if err != nil {
		t.Fatal(err)
	}
	r := upgradecheck.NewReader(table)
	r.Documents([]byte(`
kind: DaemonSet
metadata: {name: a}
spec:
  template:
    spec:
      containers:
      - {name: x, image: "example.com:5000/kube-proxy:v1.36.3@sha256:0", args: ["--feature-gates=WinDSR=true", --v, "2"]}
      - {name: y, image: example.com/other, args: ["--feature-gates=WinOverlay=true"]}
      - name: kube-proxy
        image: example.com/script
        env:
        - {name: FEATURE_GATES, value: "WinOverlay=true,WinDSR=true"}
        - {name: KUBELET_EXTRA_ARGS, value: "--cloud-config=x --v=2"}
        - {name: EXTRA_ARGS, value: "--log-dir=x"}
        - {name: FEATURE_GATES_FROM, valueFrom: {configMapKeyRef: {name: a, key: b}}}
`), upgradecheck.Place{})
	var got []string
	for _, s := range r.Settings {
		got = append(got, string(s.Program)+" "+s.Name+" @ "+s.Place.Field)
	}
	const containers = " @ spec.template.spec.containers"
	want := []string{
		"kube-proxy WinDSR" + containers + "[0].args[0]", "kube-proxy v" + containers + "[0].args[1]",
		"kube-proxy WinOverlay" + containers + "[2].env[0].value", "kube-proxy WinDSR" + containers + "[2].env[0].value",
		"kubelet cloud-config" + containers + "[2].env[1].value", "kubelet v" + containers + "[2].env[1].value",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
