package kubesettings_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
)

func load(t *testing.T) *kubesettings.Table {
	t.Helper()
	table, err := kubesettings.Load()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// The states of gates by upstream's pull requests: kubernetes/kubernetes#130876 (WinDSR beta), #132108 and #133042 (locked),
// #142125 and #142018 (removed), #129296 (CPUManager removed), #142500 (affinity on).
func TestGates(t *testing.T) {
	table := load(t)
	state := func(known bool, since, gone int) kubesettings.State {
		return kubesettings.State{Known: known, Since: since, Gone: gone}
	}
	for _, test := range []struct {
		name  string
		minor int
		want  kubesettings.Gate
	}{
		{"WinDSR", 33, kubesettings.Gate{State: state(true, 33, 38), Stage: "beta", On: true}},
		{"WinDSR", 36, kubesettings.Gate{State: state(true, 34, 38), Stage: "ga", On: true, Locked: true}},
		{"WinDSR", 38, kubesettings.Gate{State: state(false, 38, 0)}},
		{"WinOverlay", 34, kubesettings.Gate{State: state(true, 34, 38), Stage: "ga", On: true, Locked: true}},
		{"WindowsHostNetwork", 37, kubesettings.Gate{State: state(true, 33, 38), Stage: "deprecated"}},
		{"CPUManager", 33, kubesettings.Gate{}},
		{"WindowsCPUAndMemoryAffinity", 37, kubesettings.Gate{State: state(true, 33, 0), Stage: "alpha"}},
		{"WindowsCPUAndMemoryAffinity", 38, kubesettings.Gate{State: state(true, 38, 0), Stage: "beta", On: true}},
		{"AllAlpha", 38, kubesettings.Gate{State: state(true, 33, 0), Stage: "alpha"}},
		{"NoSuchGate", 38, kubesettings.Gate{}},
	} {
		got := table.Gate(test.name, test.minor)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s in 1.%d: -want +got:\n%s", test.name, test.minor, diff)
		}
	}
}

// The numbers of gates of the six versions were counted by another reader of the same sources.
func TestTheNumberOfGates(t *testing.T) {
	table := load(t)
	want := map[int]int{33: 191, 34: 208, 35: 218, 36: 241, 37: 253, 38: 242}
	got := map[int]int{}
	for minor := table.Oldest(); minor <= table.Newest(); minor++ {
		for _, name := range table.Gates() {
			if table.Gate(name, minor).Known {
				got[minor]++
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFlagsAndFields(t *testing.T) {
	table := load(t)
	if got := table.Flag(kubesettings.Kubelet, "pod-infra-container-image", 34); !got.Known || !got.Deprecated || got.Gone != 35 {
		t.Errorf("--pod-infra-container-image in 1.34: %+v", got)
	}
	if got := table.Flag(kubesettings.Kubelet, "pod-infra-container-image", 36); got.Known || got.Since != 35 {
		t.Errorf("--pod-infra-container-image in 1.36: %+v", got)
	}
	for _, name := range []string{"enable-dsr", "source-vip", "windows-service", "v", "feature-gates", "version"} {
		if !table.Flag(kubesettings.KubeProxy, name, 38).Known {
			t.Errorf("kube-proxy 1.38 lacks --%s", name)
		}
	}
	if got := table.Field(kubesettings.Kubelet, "defaultPodSysctls", 36); got.Known {
		t.Errorf("defaultPodSysctls in 1.36: %+v", got)
	}
	if got := table.Field(kubesettings.Kubelet, "authentication.x509.clientCAFile", 38); !got.Known {
		t.Errorf("authentication.x509.clientCAFile in 1.38: %+v", got)
	}
	if !table.HasFields(kubesettings.KubeProxy, "winkernel") || table.HasFields(kubesettings.Kubelet, "evictionHard") {
		t.Error("winkernel has fields, and evictionHard is a map")
	}
	if got := table.Source(38); got != "v1.38.0-beta.0" {
		t.Errorf("the source of 1.38 is %s", got)
	}
}

// A gate that another needs exists.
func TestNeeds(t *testing.T) {
	table := load(t)
	count := 0
	for _, name := range table.Gates() {
		for minor := table.Oldest(); minor <= table.Newest(); minor++ {
			for _, needed := range table.Needs(name, minor) {
				count++
				if !table.Gate(needed, minor).Known {
					t.Errorf("%s needs %s in 1.%d, which lacks it", name, needed, minor)
				}
			}
		}
	}
	if count == 0 {
		t.Error("no gate needs another")
	}
	if got := table.Needs("WindowsGracefulNodeShutdown", 37); !slices.Equal(got, []string{"GracefulNodeShutdown"}) {
		t.Errorf("WindowsGracefulNodeShutdown needs %v", got)
	}
}

// Package kubeletargs knows removed flags since 1.22; from the table's first version on, both agree.
func TestKubeletargsAgrees(t *testing.T) {
	table := load(t)
	for minor := table.Oldest(); minor <= table.Newest(); minor++ {
		for _, name := range table.Flags(kubesettings.Kubelet, table.Oldest()) {
			if known := table.Flag(kubesettings.Kubelet, name, minor).Known; known == kubeletargs.Gone(name, minor) {
				t.Errorf("--%s in 1.%d: known is %v in the table, and gone is the same in kubeletargs", name, minor, known)
			}
		}
	}
}
