package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/lint"
)

// Reports that the state of a pod has overtaken, and exit codes of the program's own, are no findings.
func TestReportsOfAPod(t *testing.T) {
	const ready = "status: {phase: Running, conditions: [{type: Ready, status: 'True'}, {type: PodScheduled, status: 'True'}]}\n"
	container := func(state string) string {
		return "status: {containerStatuses: [{name: web, ready: false, " + state + "}]}\n"
	}
	for name, test := range map[string]struct{ status, event, want string }{
		"an event before the pod was ready":  {ready, "FailedScheduling", ""},
		"an event about a pod that waits":    {"status: {phase: Pending}\n", "FailedScheduling", "pod-unscheduled"},
		"an event about an earlier pod":      {"status: {phase: Pending}\n", "FailedScheduling uid", ""},
		"a crash":                            {container("state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}"), "", "pod-crash"},
		"an exit code of the program":        {container("lastState: {terminated: {exitCode: -1}}"), "", ""},
		"a missing DLL":                      {container("lastState: {terminated: {exitCode: -1073741515}}"), "", "pod-exit"},
		"a container that was stopped":       {"status: {containerStatuses: [{name: web, ready: true, lastState: {terminated: {exitCode: -1073741510}}}]}\n", "", ""},
		"a container that is being made":     {container("state: {waiting: {reason: ContainerCreating}}"), "", ""},
		"another reason":                     {container("state: {waiting: {reason: NewReason}}"), "", "pod-start"},
		"a file that is in use, not missing": {container("state: {waiting: {reason: RunContainerError, message: 'hcs::System::CreateProcess a: used by another process (0x20)'}}"), "", "pod-start"},
		"an eviction":                        {"status: {phase: Failed, reason: Evicted}\n", "", "pod-ended"},
		"a gate":                             {"status: {conditions: [{type: PodScheduled, status: 'False', reason: SchedulingGated}]}\n", "", "pod-gated"},
		"a probe":                            {"status: {phase: Running}\n", "Unhealthy", "pod-probe"},
	} {
		reason, uid, _ := strings.Cut(test.event, " ")
		text := strings.Replace(lint.Manifest("hostname: a"), "  name: web\n", "  name: web\n  uid: one\n", 1) + test.status
		if reason != "" {
			of := "one"
			if uid != "" {
				of = "two"
			}
			text += fmt.Sprintf("---\napiVersion: v1\nkind: Event\nmetadata: {name: e}\ntype: Warning\ninvolvedObject: {kind: Pod, name: web, uid: %s}\nreason: %s\nmessage: the message\n", of, reason)
		}
		if got := ruleIDs(checked(t, text)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A RuntimeClass adds its selector and its tolerations; labels that no node has may be those of a pool without nodes.
func TestNoNode(t *testing.T) {
	const node = "apiVersion: v1\nkind: Node\nmetadata: {name: win-1, labels: {kubernetes.io/os: windows, pool: a}}\nspec: {taints: [{key: os, value: windows, effect: NoSchedule}]}\n---\n"
	const class = "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: w}\nhandler: runhcs-wcow-process\n" +
		"scheduling: {nodeSelector: {kubernetes.io/os: windows, pool: POOL}, tolerations: [{key: os, value: windows}]}\n---\n"
	for name, test := range map[string]struct{ text, want string }{
		"a class":               {strings.Replace(class, "POOL", "a", 1) + lint.Manifest("runtimeClassName: w"), ""},
		"a class, other nodes":  {strings.Replace(class, "POOL", "b", 1) + lint.Manifest("runtimeClassName: w"), "warning"},
		"no class":              {lint.Manifest("hostname: a"), "error"},
		"a pod that has ended":  {lint.Manifest("hostname: a") + "status: {phase: Succeeded}\n", ""},
		"a pool without a node": {lint.Manifest("nodeSelector: {kubernetes.io/os: windows, pool: c}\ntolerations: [{operator: Exists}]"), "warning"},
	} {
		got := ""
		for _, f := range checked(t, node+test.text).Findings {
			if f.Rule == "place-no-node" {
				got = string(f.Severity)
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Rules about several objects end after a bounded number of comparisons, and the report says so.
func TestComparisonsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 700 {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Node\nmetadata: {name: n%d, labels: {kubernetes.io/os: windows}}\nspec: {taints: [{key: a, effect: NoSchedule}]}\n---\n", i)
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {os: {name: windows}, nodeSelector: {kubernetes.io/os: windows}, containers: [{name: a, image: 'a:1'}]}\n---\n", i)
	}
	var r lint.Reader
	r.File("a.yaml", []byte(b.String()))
	report := r.Check(lint.Options{})
	n := 0
	for _, f := range report.Findings {
		if f.Rule == "place-no-node" {
			n++
		}
	}
	if len(report.Unread) != 1 || n == 0 || n > 300 {
		t.Errorf("%d findings, not read: %+v", n, report.Unread)
	}
}
