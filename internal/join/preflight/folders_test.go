package preflight

import (
	"strings"
	"testing"
)

func TestAFolderThatSeveralProgramsRunFromIsOnePlace(t *testing.T) {
	places := placesOf([]Program{
		{Name: "kubelet", Path: `C:\k\kubelet.exe`}, {Name: "containerd", Path: `c:/K/containerd.exe`},
		{Name: "kube-proxy", Path: `D:\kube`, Folder: true},
	})
	var got []string
	for _, p := range places {
		got = append(got, p.Path+": "+strings.Join(p.Programs, ", "))
	}
	want := `C:\k: kubelet, containerd|D:\kube: kube-proxy|C:\k\kubelet.exe: kubelet|c:/K/containerd.exe: containerd`
	if strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}

func TestAFileIsNamedOnlyIfItIsWorseThanItsFolder(t *testing.T) {
	folder := []Changeable{{Path: `C:\k`, By: []string{"BU", "AU"}}}
	if !saysFolder(folder, Changeable{Path: `c:/k/a.exe`, By: []string{"BU"}}) {
		t.Error("the folder's finding says it already")
	}
	if saysFolder(folder, Changeable{Path: `C:\k\a.exe`, By: []string{"WD"}}) ||
		saysFolder(folder, Changeable{Path: `C:\x\a.exe`, By: []string{"BU"}}) {
		t.Error("no folder's finding says it")
	}
}

func TestTheRemedyForAFolderIsForAShell(t *testing.T) {
	f := healthy()
	f.node.changeable.value = []Changeable{
		{Path: `C:\k`, By: []string{"BU"}, Programs: []string{"kubelet", "containerd"}},
		{Path: `D:\my kube\kube-proxy.exe`, By: []string{"WD"}, Programs: []string{"kube-proxy"}, File: true},
	}
	want := []struct{ what, command string }{
		{
			`ordinary accounts can change C:\k, from which SYSTEM runs kubelet, containerd`,
			"`swdt exec -- icacls 'C:\\k' /inheritance:r /grant " +
				"'*S-1-5-18:(OI)(CI)F' '*S-1-5-32-544:(OI)(CI)F' '*S-1-5-32-545:(OI)(CI)RX'`",
		}, {
			`ordinary accounts can change D:\my kube\kube-proxy.exe, which SYSTEM runs`,
			"`swdt exec -- icacls 'D:\\my kube\\kube-proxy.exe' /inheritance:r /grant " +
				"'*S-1-5-18:F' '*S-1-5-32-544:F' '*S-1-5-32-545:RX'`",
		},
	}
	got := lookAtChangeable(f)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		if got[i].What != w.what || !strings.HasSuffix(got[i].Remedy, w.command) {
			t.Errorf("%s\n%s\nwant\n%s\n%s", got[i].What, got[i].Remedy, w.what, w.command)
		}
	}
}
