package evidence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Records of specs that passed are dropped first, then the oldest, until the rest is within the bound.
func TestMakeRoom(t *testing.T) {
	r := &Recorder{}
	add := func(name string) {
		n := &namespace{name: name, byPod: map[types.UID]*pod{}, events: map[types.UID]*event{}}
		for i := range 40 {
			n.takePod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i)),
				Annotations: map[string]string{"large": strings.Repeat("x", 400<<10)}}}, false)
		}
		r.namespaces = append(r.namespaces, n)
	}
	for _, spec := range []struct {
		name   string
		passed bool
	}{{"failed", false}, {"passed", true}, {"failed too", false}, {"later", false}, {"last", false}} {
		add(spec.name)
		r.Ended(spec.passed)
	}
	var kept []string
	size := 0
	for _, n := range r.namespaces {
		if size += n.bytes(); n.dropped == "" {
			kept = append(kept, n.name)
		}
	}
	if diff := cmp.Diff([]string{"failed too", "later", "last"}, kept); diff != "" || size > maxRecords {
		t.Errorf("%d bytes (-want +got)\n%s", size, diff)
	}
}

func TestANamespaceIsBounded(t *testing.T) {
	n := &namespace{name: "n", byPod: map[types.UID]*pod{}, events: map[types.UID]*event{}}
	for i := range maxPods + 5 {
		n.takePod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}}, false)
	}
	for i := range maxEvents + 5 {
		n.takeEvent(&corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}})
	}
	if len(n.pods) != maxPods || len(n.events) != maxEvents || n.left != 10 {
		t.Errorf("%d pods, %d events, %d left", len(n.pods), len(n.events), n.left)
	}
	p := n.pods[0]
	for i := range 2 * maxChanges {
		p.changes = p.changes.add(fmt.Sprint(i))
	}
	if len(p.changes) != maxChanges || p.changes[maxChanges-1].State != fmt.Sprint(2*maxChanges-1) {
		t.Errorf("%d states", len(p.changes))
	}
}

func TestTailIsBounded(t *testing.T) {
	var o tail
	whole := 0
	for i := range 100_000 {
		line := fmt.Sprintln("line", i)
		whole += len(line)
		o.add([]byte(line), maxOutput)
	}
	if len(o.kept) > 2*maxOutput || int(o.dropped)+len(o.kept) != whole ||
		!strings.HasSuffix(string(o.kept), "line 99999\n") {
		t.Errorf("%d bytes are kept, %d dropped, of %d", len(o.kept), o.dropped, whole)
	}
}

func TestWithin(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	all := changes{{at(10), "a"}, {at(20), "b"}, {at(30), "c"}, {at(40), "d"}}
	for _, test := range []struct {
		begin, end int
		want       string
	}{{15, 35, "abc"}, {20, 30, "bc"}, {50, 60, "d"}, {0, 5, ""}, {12, 13, "a"}, {0, 100, "abcd"}} {
		got := ""
		for _, c := range all.within(window{at(test.begin), at(test.end)}) {
			got += c.State
		}
		if got != test.want {
			t.Errorf("%d to %d: %s, want %s", test.begin, test.end, got, test.want)
		}
	}
}

func TestSlug(t *testing.T) {
	for text, want := range map[string]string{
		"[sig-node] Pods should run": "sig-node-pods-should-run",
		"../../etc/passwd":           "etc-passwd",
		"…":                          "",
		"CON.":                       "con",
		strings.Repeat("a", 1000):    strings.Repeat("a", maxSlug),
		"a\x00b\x1b[2J" + strings.Repeat("\u202e", 9): "a-b-2j",
	} {
		if got := slug(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The state in words has why a pod does not run.
func TestPodState(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "win-1"}, Status: corev1.PodStatus{Phase: corev1.PodPending,
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "a", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull",
				Message: "no variant\nfor this Windows"}}},
			{Name: "b", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3,
				Reason: "Error"}}},
			{Name: "c", RestartCount: 4, LastTerminationState: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "panic"}}},
		}}}
	const want = "Pending on win-1; waits: a: ErrImagePull: no variant; b: ended with exit code 3: Error; " +
		"c: restarted 4 times, last exit code 1: Error: panic"
	if diff := cmp.Diff(want, podState(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
