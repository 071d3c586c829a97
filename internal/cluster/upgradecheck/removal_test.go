package upgradecheck_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// A setting goes from the nodes that have it. A DaemonSet, the running configuration and a script in an image stay, and
// so does what only a later version refuses.
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
	r.Documents([]byte("kind: DaemonSet\nmetadata: {name: kube-proxy}\nspec: {template: {spec: {nodeSelector: {kubernetes.io/os: windows}, "+
		"containers: [{name: a, image: a, command: [kube-proxy.exe, '--feature-gates=WinDSR=true']}]}}}\n"), upgradecheck.Place{})
	removals, left := upgradecheck.Removals(upgradecheck.Check(table, target, r.Facts))
	want := []upgradecheck.Removal{
		{Node: "win-1", Program: kubesettings.Kubelet, Kind: upgradecheck.FlagSetting, Name: "pod-infra-container-image"},
		{Node: "win-1", Program: kubesettings.KubeProxy, Kind: upgradecheck.GateSetting, Name: "WinDSR"},
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
	if diff := cmp.Diff([]string{"WinDSR @ DaemonSet kube-proxy, spec.template.spec.containers[0].command[1]", "WinDSR @ node win-1, configz"}, places); diff != "" {
		t.Error(diff)
	}
}
