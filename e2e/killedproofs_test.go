//go:build e2e && linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterapi "github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane/controlplanetest"
	"github.com/swdt-dev/swdt/internal/testing/suitetest"
)

// mostPoints bounds the changes of a command at which it is killed.
const mostPoints = 12

// TestKilledProofsLeaveNothing ends the commands that make objects in a cluster, at changes that they make, by
// kill -9 and by Ctrl-C. On a real control plane, the next command removes what a killed one has left, and an
// interrupted one leaves nothing itself. The nodes and their kubelets are stand-ins.
func TestKilledProofsLeaveNothing(t *testing.T) {
	if os.Getenv("SWDT_LAB_CLUSTER") != "required" {
		t.Skip("needs the lab's control plane: run make e2e")
	}
	plane := controlplanetest.Start(t, controlplane.Options{})
	api, err := clusterapi.Open(clusterapi.Options{Kubeconfig: plane.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	startStandInNodes(t, api)
	k := &killing{api: api, gate: newGate(t, plane.Kubeconfig()), records: filepath.Join(t.TempDir(), "swdt", "e2e")}
	t.Setenv("KUBECONFIG", k.gate.kubeconfig)
	t.Setenv("XDG_DATA_HOME", filepath.Dir(filepath.Dir(k.records)))
	t.Setenv("SPECS_NODE", "lin-1")
	specs := []string{"e2e", "--binary", suitetest.Build(t), "--skip-checks", "--no-evidence", "--focus"}
	k.plantOthers(t)
	state := t.TempDir()
	node := ok(t, "sandbox", "up", "--name", "killed", "--state-dir", state, "-o", "json")
	t.Cleanup(func() { ok(t, "sandbox", "down", "--name", "killed", "--state-dir", state) })

	for name, command := range map[string][]string{
		"e2e": append(slices.Clone(specs), `Pods\]|Stubborn`),
		"readiness": {"readiness", "run", "--case", "probe-pod-starts,probe-node-port,probe-session-affinity,probe-source-address",
			"--wait-timeout", "30s"},
		"netpol": {"netpol", "run", "--case", "deny-ingress", "--pods", "6", "--protocols", "tcp", "--hosts", "--settle", "1ms",
			"--probe-timeout", "100ms", "--wait-timeout", "30s"},
		"scale": {"scale", "run", "-c", decoded[sandboxInfo](t, node).Config, "--services", "4", "--endpoints", "8",
			"--changes", "2", "--wait-timeout", "500ms", "--yes"},
	} {
		t.Run(name, func(t *testing.T) { k.everywhere(t, command) })
	}
	k.nothingIsLeft(t)
}

// killing ends commands that use a cluster through a gate.
type killing struct {
	api     *clusterapi.Cluster
	gate    *gate
	records string // the folder with the records of runs
}

// everywhere runs a command to its end, counts the changes that it makes, and then ends runs of it at changes
// from the first to the last one.
func (k *killing) everywhere(t *testing.T, command []string) {
	k.gate.strikeAt(0, whenDone, nil)
	k.start(t, command).end(t)
	names := k.gate.seen()
	k.expectNothing(t, "a run that nothing ended")
	t.Logf("%d changes: %s", len(names), strings.Join(names, ", "))
	begin := time.Now()
	defer func() { t.Logf("%.1f s", time.Since(begin).Seconds()) }()
	if len(names) < 5 {
		t.Fatalf("the command makes too few changes")
	}
	struck, points := 0, pointsOf(len(names))
	for i, at := range points {
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
			moment := []moment{whenDone, whenAsked}[i%2]
			if k.strike(t, command, at, moment, signal) {
				struck++
			}
		}
	}
	if struck < 2*len(points)*3/4 {
		t.Errorf("only %d of %d runs were ended", struck, 2*len(points))
	}
}

// pointsOf returns at most mostPoints numbers from 1 to count, with both.
func pointsOf(count int) (points []int) {
	most := min(count, mostPoints)
	for i := range most {
		points = append(points, 1+i*(count-1)/(most-1))
	}
	return points
}

// strike runs a command that a signal ends at a change, and reports whether it made this change.
func (k *killing) strike(t *testing.T, command []string, at int, m moment, signal syscall.Signal) bool {
	t.Helper()
	started, what := make(chan *doomed, 1), ""
	k.gate.strikeAt(at, m, func(change string) {
		r := <-started
		what = change
		_ = r.cmd.Process.Signal(signal)
		if signal == syscall.SIGKILL {
			<-r.ended
		}
	})
	r := k.start(t, command)
	started <- r
	r.end(t)
	if k.gate.strikeAt(0, whenDone, nil); what == "" {
		t.Logf("the run made fewer than %d changes", at)
		return false
	}
	where := fmt.Sprintf("%s at change %d (%s, %s)", signal, at, what, m)
	if signal == syscall.SIGKILL {
		// e2e.test may still be at work, and a record of a run at work is left alone.
		startsPrograms := command[0] == "e2e"
		within(t, 2*time.Minute, where+": the next command removes all", func() error {
			next := command
			if !startsPrograms {
				next = []string{"readiness", "run", "--case", "probe-node-logs"} // which makes nothing, and ends soon
			}
			k.start(t, next).end(t)
			if left := k.left(t); len(left) > 0 {
				return fmt.Errorf("left: %q", left)
			}
			return nil
		})
	}
	k.expectNothing(t, where)
	return true
}

// doomed is a swdt at work.
type doomed struct {
	cmd    *exec.Cmd
	ended  chan struct{} // is closed when its process has ended
	output bytes.Buffer
}

func (k *killing) start(t *testing.T, command []string) *doomed {
	t.Helper()
	r := &doomed{ended: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	t.Cleanup(cancel)
	r.cmd = exec.CommandContext(ctx, environment(t, "SWDT_BIN"), command...)
	r.cmd.Dir = t.TempDir() // the results
	r.cmd.Stdout, r.cmd.Stderr, r.cmd.WaitDelay = &r.output, &r.output, 10*time.Second
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.cmd.Wait() // the exit code depends on where a signal ended it
	}()
	return r
}

// end waits for the end of the process.
func (r *doomed) end(t *testing.T) {
	t.Helper()
	<-r.ended
	if r.cmd.ProcessState == nil {
		t.Fatal("the process has no state")
	}
}

const others = "others"

// plantOthers makes a namespace that looks like one of a run, but of another user.
func (k *killing) plantOthers(t *testing.T) {
	t.Helper()
	const id = "01234567-89ab-cdef-0123-456789abcdef"
	_, err := k.api.Clientset().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: others, Labels: map[string]string{"app.kubernetes.io/managed-by": "swdt", "swdt.dev/run": id, "e2e-run": id,
			"e2e-framework": "pods"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// left returns the namespaces of runs that are not being removed.
func (k *killing) left(t *testing.T) (names []string) {
	t.Helper()
	for _, n := range k.namespaces(t) {
		if n.DeletionTimestamp == nil && n.Name != others {
			names = append(names, n.Name)
		}
	}
	return names
}

// namespaces returns the namespaces that do not belong to the control plane.
func (k *killing) namespaces(t *testing.T) []corev1.Namespace {
	t.Helper()
	all, err := k.api.Clientset().CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all.Items, func(n corev1.Namespace) bool {
		return n.Name == metav1.NamespaceDefault || strings.HasPrefix(n.Name, "kube-")
	})
}

// expectNothing fails the test if a namespace of a run is left, or a record of one.
func (k *killing) expectNothing(t *testing.T, after string) {
	t.Helper()
	if left := k.left(t); len(left) > 0 {
		t.Errorf("%s: namespaces are left: %q", after, left)
	}
	if left, err := os.ReadDir(k.records); err != nil || len(left) > 0 {
		t.Errorf("%s: records are left: %v, %v", after, left, err)
	}
}

// nothingIsLeft waits until the control plane has removed the namespaces, and fails the test if an object is left
// outside of those of the control plane.
func (k *killing) nothingIsLeft(t *testing.T) {
	t.Helper()
	within(t, 3*time.Minute, "the end of the namespaces", func() error {
		var names []string
		for _, n := range k.namespaces(t) {
			names = append(names, n.Name)
		}
		if diff := cmp.Diff([]string{others}, names); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	ctx, client := t.Context(), k.api.Clientset()
	pods, err1 := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	services, err2 := client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	policies, err3 := client.NetworkingV1().NetworkPolicies("").List(ctx, metav1.ListOptions{})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		t.Errorf("pod %s/%s is left", p.Namespace, p.Name)
	}
	for _, s := range services.Items {
		if s.Name != "kubernetes" && s.Namespace != metav1.NamespaceSystem {
			t.Errorf("Service %s/%s is left", s.Namespace, s.Name)
		}
	}
	for _, p := range policies.Items {
		t.Errorf("NetworkPolicy %s/%s is left", p.Namespace, p.Name)
	}
}
