package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/day0/up"
	"github.com/swdt-dev/swdt/internal/testing/cases"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
)

// killAt is the variable with the lines of the story at which swdt kills itself, before it writes the first of
// them. greetVM makes an SSH server of a VM greet, as long as swdt runs.
const (
	killAt  = "SWDT_TEST_KILL_AT"
	greetVM = "SWDT_TEST_VM_GREETS"
)

// mortal is the error stream of a swdt that may kill itself.
type mortal struct {
	io.Writer
	at string // the lines; "": swdt lives
}

func (m mortal) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		if m.at != "" && slices.Contains(strings.Split(m.at, "\n"), strings.TrimSuffix(line, "\n")) {
			if p, err := os.FindProcess(os.Getpid()); err == nil && p.Kill() == nil {
				select {} // SIGKILL ends the process
			}
		}
	}
	return m.Writer.Write(text)
}

// greeting is a driver of VMs whose forwarded SSH port greets.
type greeting struct {
	*simulatedvm.Driver
	once sync.Once
}

func (g *greeting) Addresses(ctx context.Context, m vm.Machine) ([]vm.Address, error) {
	all, err := g.Driver.Addresses(ctx, m)
	if err == nil && len(all) > 0 {
		g.once.Do(func() { go greet(all[0].HostPort()) })
	}
	return all, err
}

func greet(address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return // the wait for the SSH server reports it
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "SSH-2.0-test\r\n")
		_ = conn.Close()
	}
}

// victim is a folder with the files of a cluster: its control plane is simulated by package kindtest and
// by the API server of a sandbox, the node bare is that sandbox, and win-2 is a simulated VM.
type victim struct {
	t      *testing.T
	folder string
	env    []string
	api    *cluster.Cluster
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{t: t, folder: t.TempDir()}
	at := func(name string) string { return filepath.Join(v.folder, name) }
	box := at("state/swdt/sandbox/bare")
	v.env = append(os.Environ(), "HOME="+at("home"), "XDG_STATE_HOME="+at("state"), "XDG_DATA_HOME="+at("data"),
		"XDG_CACHE_HOME="+at("cache"), "SSH_AUTH_SOCK=", "GORACE=atexit_sleep_ms=0", "SWDT_TEST_KIND="+at("kind"),
		"SWDT_TEST_KUBECONFIG="+filepath.Join(box, "admin.conf"), greetVM+"=1", "KUBECONFIG="+at("kubeconfig"),
		"SWDT_CONFIG="+at("all.yaml"))
	v.must("sandbox", "up", "--name", "bare", "--cluster")
	t.Cleanup(func() { endSandboxes(t, filepath.Dir(box)) })
	var err error
	if v.api, err = cluster.Open(cluster.Options{Kubeconfig: filepath.Join(box, "admin.conf")}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(box, "node.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	node := strings.Replace(string(text), "  kubernetes:\n", "  setup: {environment: {STAGE: up}}\n  kubernetes:\n"+
		"    join: {controlPlaneEndpoint: "+v.api.Endpoint()+"}\n", 1)
	documents := node + "---\napiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: win-2}\n" +
		"spec: {machine: {driver: simulated}}\n" +
		"---\napiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev}\n" +
		"spec: {controlPlane: {kind: {}}, network: {plugin: flannel}}\n"
	if err := os.WriteFile(at("all.yaml"), []byte(documents), 0o600); err != nil {
		t.Fatal(err)
	}
	return v
}

// plantFlannel gives the cluster a flannel of another tool, with the VXLAN numbers of Linux, and an
// address of the API server that nodes could use.
func (v *victim) plantFlannel() {
	v.t.Helper()
	ctx, client := v.t.Context(), v.api.Clientset()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-flannel"}}
	_, err := client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		v.t.Fatal(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-flannel-cfg", Namespace: "kube-flannel"},
		Data: map[string]string{"net-conf.json": `{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}`}}
	_, err = client.CoreV1().ConfigMaps(config.Namespace).Create(ctx, config, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = client.CoreV1().ConfigMaps(config.Namespace).Update(ctx, config, metav1.UpdateOptions{})
	}
	if err != nil {
		v.t.Fatal(err)
	}
	for namespace, name := range map[string]string{"kube-flannel": "kube-flannel-ds",
		"kube-system": "kube-flannel-ds-windows-amd64"} {
		labels := map[string]string{"app": "flannel"}
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
		set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		set.Spec.Template.Labels = labels
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "flannel", Image: "flannel:v0.28.10"}}
		if namespace == "kube-system" {
			set.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "windows"}
		}
		made, err := client.AppsV1().DaemonSets(namespace).Create(ctx, set, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err == nil { // no controller runs, which would report that no node lacks a pod
			made.Status.ObservedGeneration = made.Generation + 1
			_, err = client.AppsV1().DaemonSets(namespace).UpdateStatus(ctx, made, metav1.UpdateOptions{})
		}
		if err != nil {
			v.t.Fatal(err)
		}
	}
	v.plantPods()
	kubeadm, err := client.CoreV1().ConfigMaps("kube-system").Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		v.t.Fatal(err)
	}
	kubeadm.Data["ClusterConfiguration"] = strings.ReplaceAll(kubeadm.Data["ClusterConfiguration"],
		"controlPlaneEndpoint: "+v.api.Endpoint(), "controlPlaneEndpoint: 192.168.122.1:6443")
	if _, err := client.CoreV1().ConfigMaps("kube-system").Update(ctx, kubeadm, metav1.UpdateOptions{}); err != nil {
		v.t.Fatal(err)
	}
}

// plantPods gives the node the pods that the controller of DaemonSets would make there.
func (v *victim) plantPods() {
	v.t.Helper()
	ctx, client := v.t.Context(), v.api.Clientset().CoreV1().Pods("kube-system")
	for _, app := range []string{"flannel", "kube-proxy"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: app + "-on-windows", Namespace: "kube-system",
			Labels: map[string]string{"app": app}}}
		pod.Spec.NodeName, pod.Spec.HostNetwork = "bare", true
		made, err := client.Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err == nil {
			made.Status.Phase = corev1.PodRunning
			made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			_, err = client.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		}
		if err != nil {
			v.t.Fatal(err)
		}
	}
}

// ended is the result of a swdt.
type ended struct {
	code           int // -1: a signal has ended it
	stdout, stderr string
}

// swdt runs swdt, which kills itself at the first of these lines of its story; "": it lives.
func (v *victim) swdt(lines string, args ...string) ended {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), 2*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, "swdt", args...)
	command.Dir, command.Env = v.folder, append(slices.Clone(v.env), killAt+"="+lines)
	command.Stdout, command.Stderr = &stdout, &stderr
	command.WaitDelay = time.Second // a sandbox that the command has started keeps its streams
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		v.t.Fatal(err)
	}
	return ended{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func (v *victim) must(args ...string) ended {
	v.t.Helper()
	e := v.swdt("", args...)
	if e.code != 0 {
		v.t.Fatalf("swdt %s: exit code %d\n%s%s", strings.Join(args, " "), e.code, e.stdout, e.stderr)
	}
	return e
}

// stages returns the results of the stages that a command prints with -o json.
func (v *victim) stages(e ended) []string {
	v.t.Helper()
	var report up.Report
	if err := json.Unmarshal([]byte(e.stdout), &report); err != nil {
		v.t.Fatalf("%v: %s%s", err, e.stdout, e.stderr)
	}
	all := []string{}
	for _, s := range report.Stages {
		all = append(all, strings.TrimSpace(s.Stage+" "+s.Node)+" "+s.Result)
	}
	return all
}

// rest returns everything that up makes and down removes: clusters, VMs, records.
func (v *victim) rest() []string {
	v.t.Helper()
	all := []string{}
	for _, pattern := range []string{"kind/*", "data/swdt/up/*.json", "data/swdt/clusters/*.json",
		"data/swdt/machines/[^.]*"} {
		found, err := filepath.Glob(filepath.Join(v.folder, pattern))
		if err != nil {
			v.t.Fatal(err)
		}
		all = append(all, found...)
	}
	all = append(all, strings.Fields(v.must("vm", "list", "-o", "name").stdout)...)
	return all
}

// begin makes the cluster what it is before an up: without Nodes, which end with a real cluster, and
// with a flannel that is not suitable.
func (v *victim) begin() {
	v.t.Helper()
	err := v.api.Clientset().CoreV1().Nodes().DeleteCollection(v.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		v.t.Fatal(err)
	}
	v.plantFlannel()
}

// pointsOf returns the distinct lines of a story at which a run can be killed, in their order: the
// lines of stages, and every step of a stage. It leaves out the lines that differ between runs, such as
// those of the board, which end with an estimate if there is one.
func pointsOf(story string) (points []string) {
	varies := regexp.MustCompile(`[0-9]{3}|[0-9]+(\.[0-9]+)?m?s\b|waiting|swdt-smoke|: [a-z]+ begins$`)
	for line := range strings.Lines(story) {
		line = strings.TrimSuffix(line, "\n")
		if !varies.MatchString(line) && !slices.Contains(points, line) && strings.TrimSpace(line) != "" {
			points = append(points, line)
		}
	}
	return points
}

// stagesOf returns the kinds of the stages that begin in a story.
func stagesOf(points []string) []string {
	begins := regexp.MustCompile(`stage ([a-z]+) begins`)
	kinds := map[string]bool{}
	for _, point := range points {
		if found := begins.FindStringSubmatch(point); found != nil {
			kinds[found[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// chosen returns the points at which the test kills: the beginning and the end of each stage, and one in oneIn of the
// others, or all of them, as package cases chooses.
func chosen(t *testing.T, points []string, oneIn int) []string {
	ofStages := func(point string) bool { return strings.Contains(point, "stage ") }
	others := slices.DeleteFunc(slices.Clone(points), ofStages)
	some := cases.Of(t, others, (len(others)+oneIn-1)/oneIn)
	return slices.DeleteFunc(slices.Clone(points), func(point string) bool {
		return !ofStages(point) && !slices.Contains(some, point)
	})
}

// TestUpAndDownAreKilledAnywhere kills up at each stage and step that a first run prints, and then down.
// The next up ends with everything in place, and the next down with nothing left. A new stage is in the
// story, and so in the test; a stage that this cluster does not run fails the test.
func TestUpAndDownAreKilledAnywhere(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	v.begin()
	before := v.rest()
	makes := []string{"up", "-v", "--allow-reboot", "--smoke", "--smoke-wait", "1s", "-o", "json"}
	removes := []string{"down", "-v", "--yes", "-o", "json"}

	first := v.swdt("", makes...)
	points := pointsOf(first.stderr)
	want := slices.Sorted(slices.Values(up.Kinds()))
	if diff := cmp.Diff(want, stagesOf(points)); diff != "" || len(points) < 40 {
		t.Fatalf("%d points; the stages (-want +got):\n%s\n%s", len(points), diff, first.stderr)
	}
	complete := v.stages(v.swdt("", makes...))
	for _, result := range complete {
		if !strings.HasSuffix(result, " unchanged") && result != "check failed" { // nothing schedules pods here
			t.Fatalf("a second up: %v", complete)
		}
	}
	removed := v.must(removes...)
	downs := pointsOf(removed.stderr)
	if len(stagesOf(downs)) == 0 {
		t.Fatalf("down has no stages: %s", removed.stderr)
	}
	if diff := cmp.Diff(before, v.rest()); diff != "" {
		t.Fatalf("left after down (-want +got):\n%s", diff)
	}
	t.Logf("%d points of up, %d of down", len(points), len(downs))

	upEnds, downEnds := lastStage(points), lastStage(downs)
	ups, downs := chosen(t, points, 13), chosen(t, downs, 7)
	for i := range max(len(ups), len(downs)) {
		upAt, downAt := ups[i%len(ups)], downs[i%len(downs)]
		t.Run(strconv.Itoa(i)+" "+upAt+" / "+downAt, func(t *testing.T) {
			v := &victim{t: t, folder: v.folder, env: v.env, api: v.api}
			v.begin()
			v.kill(upAt, upEnds, makes)
			v.swdt("", makes...)
			if diff := cmp.Diff(complete, v.stages(v.swdt("", makes...))); diff != "" {
				t.Errorf("up after an up that was killed at %q and one that continued (-want +got):\n%s", upAt, diff)
			}
			v.kill(downAt, downEnds, removes)
			v.must(removes...)
			if diff := cmp.Diff(before, v.rest()); diff != "" {
				t.Errorf("left after a down that was killed at %q and one that continued (-want +got):\n%s", downAt, diff)
			}
		})
	}
}

// lastStage returns the last line of a story that a stage prints in every run.
func lastStage(points []string) string {
	last := slices.DeleteFunc(slices.Clone(points), func(point string) bool { return !strings.Contains(point, "stage ") })
	return last[len(last)-1]
}

// kill runs swdt, which kills itself at a line. Stages run side by side, so a step may find nothing to do and not
// print its line; then swdt kills itself at the line end, which every run prints.
func (v *victim) kill(line, end string, args []string) {
	v.t.Helper()
	if e := v.swdt(line+"\n"+end, args...); e.code != -1 {
		v.t.Fatalf("swdt %s was killed neither at %q nor at %q: exit code %d\n%s", args[0], line, end, e.code, e.stderr)
	}
}
