package hang_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/goroutines"
	"github.com/swdt-dev/swdt/internal/inspect/hang"
)

// Dumps of public threads, reduced to functions and states: each names the operation for which the others wait, and the defect.
// The files name their sources.
func TestDumpsOfPublicThreadsAreNamed(t *testing.T) {
	for name, want := range map[string]struct {
		kind              hang.Kind
		operation, method string
		on                hang.Target
		minutes           int
		known             string
	}{
		"75299-properties": {hang.Kubelet, "HCS: get compute system properties", "", hang.OnHCS, 58, "kubernetes/kubernetes#75299"},
		"75299-modify":     {hang.Shim, "HCS: modify compute system", "", hang.OnHCS, 31, ""},
		"ttrpc-168": {hang.Containerd, "send a request to a shim (create stream), behind a lock", "ExecSync", hang.OnShim, 12,
			"containerd/ttrpc#168"},
		"ttrpc-174": {hang.Containerd, "send a request to a shim (create stream)", "", hang.OnShim, 1818, "containerd/ttrpc#174"},
		"10583": {hang.Containerd, "wait for a lock in container.(*statusStorage).Get", "ListContainers", hang.OnLock, 1,
			"containerd/containerd#10583"},
		"hcsshim-1237": {hang.Shim, "write the output of a container to its pipe (n pipe retry writer)", "", hang.OnPipe, 2,
			"microsoft/hcsshim#1237"},
		"go-winio-357": {hang.Shim, "close a pipe (close)", "Shutdown", hang.OnPipe, 5, "microsoft/go-winio#357"},
		"hcsshim-1574": {hang.Shim, "goroutines of one shim wait for the end of its container", "", hang.OnLeak, 480,
			"microsoft/hcsshim#1574"},
		"109162": {hang.KubeProxy, "HNS: enumerate endpoints", "", hang.OnHNS, 6, "kubernetes/kubernetes#109162"},
		"107561": {hang.Shim, "HCS: shutdown compute system", "", hang.OnHCS, 2, "kubernetes/kubernetes#107561"},
		"windows-containers-469": {hang.Shim, "HCS: terminate compute system", "Delete", hang.OnHCS, 4,
			"microsoft/Windows-Containers#469"},
		"containerd-fd29ff107": {hang.Containerd, "shim: connect", "", hang.OnShim, 9, "containerd/containerd@fd29ff107"},
		"real-cni-add":         {hang.Containerd, "run the CNI plugin (ADD)", "RunPodSandbox", hang.OnCNI, 1, ""},
		"containerd-3572":      {hang.Containerd, "shim: kill", "StopPodSandbox", hang.OnShim, 267, ""},
	} {
		n := opened(t, name)
		if n.Processes[0].Kind != want.kind {
			t.Errorf("%s: the program is %q", name, n.Processes[0].Kind)
		}
		if len(n.Waits) == 0 {
			t.Errorf("%s: %s", name, n.Verdict)
			continue
		}
		w := n.Waits[0]
		if w.Operation != want.operation || w.Method != want.method || w.On != want.on || w.Minutes != want.minutes {
			t.Errorf("%s: %+v", name, w)
		}
		if want.known != "" && !hasKnown(w, want.known) {
			t.Errorf("%s: its defect is not named: %+v", name, w.Known)
		}
		if n.Remedy == "" || !strings.Contains(n.Verdict, w.Operation) {
			t.Errorf("%s: %s; remedy: %q", name, n.Verdict, n.Remedy)
		}
	}
}

func opened(t *testing.T, name string) hang.Node {
	t.Helper()
	report, err := hang.Open(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return report.Nodes[0]
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func hasKnown(w hang.Wait, id string) bool {
	for _, k := range w.Known {
		if k.ID == id && strings.HasPrefix(k.URL, "https://github.com/") {
			return true
		}
	}
	return false
}

func TestNothingWaitsInIdleProgramsThatRunForHours(t *testing.T) {
	if n := opened(t, "idle"); n.Verdict != "nothing waits" || len(n.Waits) > 0 || n.Remedy != "" {
		t.Errorf("%s: %+v", n.Verdict, n.Waits)
	}
}

// Goroutines of a healthy containerd wait for the same things after hours.
func TestNothingWaitsInRealContainerdAfterHours(t *testing.T) {
	for _, name := range []string{"healthy-containerd-1.7.12", "healthy-containerd-2.4.2"} {
		aged := regexp.MustCompile(`(?m)^(goroutine \d+ \[)([^\]]+)`).ReplaceAllString(read(t, name), "${1}${2}, 900 minutes")
		n := hang.Node{Processes: []hang.Process{process(t, hang.Containerd, aged)}}
		n.Analyse()
		if n.Processes[0].Goroutines < 50 || n.Processes[0].Groups[0].Minutes != 900 || len(n.Waits) > 0 || n.Verdict != "nothing waits" {
			t.Errorf("%s: %d goroutines, %s: %+v", name, n.Processes[0].Goroutines, n.Verdict, n.Waits)
		}
	}
}

// A defect that the node's version does not have any more is named as absent.
func TestAVersionWithTheFixHasAnotherDefect(t *testing.T) {
	for version, fixed := range map[string]bool{
		"1.7.12": false, "v1.7.16": false, "1.7.17": true, "1.7.17+azure": true, "1.6.33": false, "v2.4.2": true, "": false, "unknown": false,
	} {
		n := opened(t, "ttrpc-168")
		n.Processes[0].Version = version
		n.Analyse()
		for _, k := range n.Waits[0].Known {
			if k.ID == "containerd/ttrpc#168" && k.Absent != fixed {
				t.Errorf("%q: absent is %t", version, k.Absent)
			}
		}
	}
}

// kubelet waits for containerd, containerd for a shim, and the shim for HCS: HCS is the root, and the pod is that of the shim.
func TestTheRootIsTheDeepestWait(t *testing.T) {
	n := hang.Node{Processes: []hang.Process{
		process(t, hang.Kubelet, "goroutine 4 [select, 6 minutes]:\nk8s.io/cri-client/pkg.(*remoteRuntimeService).StopPodSandbox(...)\n"),
		process(t, hang.Containerd, read(t, "containerd-3572")),
		process(t, hang.Shim, read(t, "windows-containers-469")),
	}, Calls: []hang.Call{{Method: "StopPodSandbox", Subject: "0123", Pod: "shop/web-1", Seconds: 400}},
		Probes: []hang.Probe{{Name: "HCS", Answers: true}}}
	n.Processes[2].Pod, n.Processes[2].ID = "shop/web-1", "0123"
	n.Analyse()
	var chain []string
	for _, w := range n.Waits {
		chain = append(chain, string(w.Process)+" on "+string(w.On)+" in "+strings.Join(w.Pods, ","))
	}
	if got := strings.Join(chain, "; "); got != "shim on HCS in shop/web-1; containerd on shim in shop/web-1; kubelet on containerd in shop/web-1" {
		t.Error(got)
	}
	const verdict = "HCS: terminate compute system for 4 minutes or longer in pod shop/web-1; shim, containerd, kubelet wait"
	if n.Verdict != verdict || !strings.Contains(n.Remedy, "only this pod") {
		t.Errorf("%s\n%s", n.Verdict, n.Remedy)
	}
	n.Probes[0] = hang.Probe{Name: "HCS", Seconds: 5}
	if n.Analyse(); !strings.Contains(n.Remedy, "drain the node") {
		t.Error(n.Remedy)
	}
}

// A dump counts in whole minutes. A call that the log shows to be older counts before.
func TestAYoungGoroutineCountsIfItsCallIsOld(t *testing.T) {
	const young = "goroutine 4 [select]:\ngithub.com/containerd/containerd/api/runtime/task/v2.(*taskClient).Create(...)\n" +
		"github.com/containerd/containerd/pkg/cri/instrument.(*instrumentedService).RunPodSandbox(...)\n"
	n := hang.Node{Processes: []hang.Process{process(t, hang.Containerd, young)}}
	if n.Analyse(); len(n.Waits) > 0 {
		t.Errorf("%+v", n.Waits)
	}
	n.Calls = []hang.Call{{Method: "RunPodSandbox", Subject: "shop/web", Pod: "shop/web", Seconds: 25}}
	if n.Analyse(); len(n.Waits) != 1 || n.Waits[0].Operation != "shim: create" || n.Waits[0].Pods[0] != "shop/web" {
		t.Errorf("%+v", n.Waits)
	}
}

// The layers of Windows take minutes to unpack, so this counts as a hang after ten.
func TestAnImageIsUnpackedForMinutes(t *testing.T) {
	for minutes, waits := range map[string]int{"9": 0, "10": 1} {
		for _, caller := range []string{"github.com/containerd/containerd/pkg/unpack.(*Unpacker).unpack",
			"github.com/containerd/containerd/pkg/cri/instrument.(*instrumentedService).PullImage"} {
			n := hang.Node{Processes: []hang.Process{process(t, hang.Containerd, "goroutine 4 [syscall, "+minutes+" minutes]:\n"+
				"github.com/Microsoft/hcsshim/internal/wclayer.importLayer(...)\n"+caller+"(...)\n")}}
			if n.Analyse(); len(n.Waits) != waits {
				t.Errorf("%s, %s minutes: %+v", caller, minutes, n.Waits)
			}
		}
	}
}

func process(t *testing.T, kind hang.Kind, text string) hang.Process {
	t.Helper()
	dump, err := goroutines.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return hang.Process{Kind: kind, PID: 4, Goroutines: len(dump.Goroutines), Groups: dump.Groups()}
}

// A node of which a part was not read may wait there: this is no good news.
func TestNothingWaitsOnlyIfEverythingWasRead(t *testing.T) {
	idle := read(t, "healthy-containerd-1.7.12")
	shim := hang.Process{Kind: hang.Shim, PID: 8, ID: "0123", Error: "it has no pipe for its goroutines", Source: "shimdiag"}
	cut := process(t, hang.Containerd, idle)
	cut.Cut = true
	for name, c := range map[string]struct {
		processes []hang.Process
		probes    []hang.Probe
		unread    []string
		verdict   string
	}{
		"all":  {[]hang.Process{process(t, hang.Containerd, idle)}, []hang.Probe{{Name: "SCM", Answers: true}}, []string{}, "nothing waits"},
		"shim": {[]hang.Process{process(t, hang.Containerd, idle), shim}, nil, []string{"shim/8"}, "nothing waits in what was read; not read: shim/8"},
		"cut":  {[]hang.Process{cut}, nil, []string{"containerd/4"}, "nothing waits in what was read; not read: containerd/4"},
		"no containerd": {[]hang.Process{process(t, hang.Kubelet, idle)}, nil, []string{"containerd"},
			"nothing waits in what was read; not read: containerd"},
		"containerd": {[]hang.Process{{Kind: hang.Containerd, PID: 4, Error: "it has no event"}, process(t, hang.KubeProxy, idle)}, nil,
			[]string{"containerd/4"}, "nothing waits in what was read; not read: containerd/4"},
		"nothing": {nil, nil, []string{"containerd"}, "unknown: no program could be read"},
	} {
		n := hang.Node{Processes: c.processes, Probes: c.probes}
		n.Name = "win-1"
		n.Analyse()
		if diff := cmp.Diff(c.unread, n.Unread); n.Verdict != c.verdict || diff != "" {
			t.Errorf("%s: %s %s", name, n.Verdict, diff)
		}
		report := hang.Report{Nodes: []hang.Node{n}}
		if report.Waits() || report.Incomplete() != (len(c.unread) > 0) {
			t.Errorf("%s: waits is %t, incomplete is %t", name, report.Waits(), report.Incomplete())
		}
	}
}

func TestTheServiceManagerIsATarget(t *testing.T) {
	n := hang.Node{Processes: []hang.Process{process(t, hang.Containerd, read(t, "healthy-containerd-1.7.12"))},
		Probes: []hang.Probe{{Name: "SCM", Seconds: 5}}}
	n.Analyse()
	if len(n.Waits) != 1 || n.Waits[0].On != hang.OnSCM || n.Verdict != "SCM does not answer within 5 s" || n.Remedy == "" {
		t.Errorf("%s: %+v; %q", n.Verdict, n.Waits, n.Remedy)
	}
}
