package hang

import (
	"strings"
	"testing"
	"time"
)

// A shim is taken for that of the pod that is being made only if it is one of kubelet's and not older than the call.
func TestThePodOfAShimIsInferred(t *testing.T) {
	began := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	later, earlier := began.Add(time.Second), began.Add(-time.Hour)
	for name, c := range map[string]struct {
		namespace string
		started   *time.Time
		pod       string
	}{
		"its shim": {"k8s.io", &later, "shop/web"}, "another namespace": {"moby", &later, ""}, "an older shim": {"k8s.io", &earlier, ""},
		"unknown": {"k8s.io", nil, ""},
	} {
		g := &gathering{dump: Node{Processes: []Process{{Kind: Shim, PID: 8, Started: c.started, Silent: true}},
			Calls: []Call{{Method: "RunPodSandbox", Pod: "shop/web", Began: &began}}}, shims: []shim{{0, c.namespace}}}
		g.inferPod()
		if p := g.dump.Processes[0]; p.Pod != c.pod || p.PodInferred != (c.pod != "") {
			t.Errorf("%s: %q", name, p.Pod)
		}
		g.dump.Analyse()
		if got := strings.Contains(g.dump.Verdict, "perhaps in pod shop/web"); got != (c.pod != "") {
			t.Errorf("%s: %s", name, g.dump.Verdict)
		}
	}
}

// A limit that is long over is no reason to wait.
func TestAnOverdueLimitIsNamed(t *testing.T) {
	for minutes, overdue := range map[int]bool{4: false, 5: true, 58: true} {
		n := &Node{Probes: []Probe{{Name: probeHCS, Answers: true}}}
		for _, process := range []Kind{Shim, Containerd} {
			text := remedyOf(n, Wait{Process: process, On: OnHCS, Minutes: minutes})
			if strings.Contains(text, "overdue") != overdue || strings.HasPrefix(text, "wait") == overdue {
				t.Errorf("%d minutes: %s", minutes, text)
			}
		}
	}
}

// Goroutines that pile up further did not move.
func TestALeakThatGrowsDidNotMove(t *testing.T) {
	leak := func(count int) Node {
		var text strings.Builder
		for i := range count {
			text.WriteString("goroutine 1" + strings.Repeat("0", i%3) + string(rune('1'+i%9)) + " [select, 9 minutes]:\nmain.(*hcsExec).waitForContainerExit(...)\n\n")
		}
		dump, err := parse([]byte(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		p := Process{Kind: Shim, PID: 3}
		p.take(dump)
		n := Node{Processes: []Process{p}}
		n.Analyse()
		return n
	}
	d := leak(61).compare(leak(70))
	if len(d.Stuck) != 1 || len(d.Moved) != 0 || len(d.New) != 0 {
		t.Errorf("%d did not move, %d moved, %d new", len(d.Stuck), len(d.Moved), len(d.New))
	}
}
