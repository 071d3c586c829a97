package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/viapod"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/ui"
)

const windowsNode = `
apiVersion: v1
kind: Node
metadata: {name: win-1, labels: {kubernetes.io/os: windows}}
status: {conditions: [{type: Ready, status: "True"}]}
`

// through is a simulated Windows node that only its cluster leads to.
type through struct {
	t       *testing.T
	machine *simulated.Machine
	cluster *apiserver.Cluster
	doc     config.Document
	options node.Options
}

func newThrough(t *testing.T) *through {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	content := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent", Version: "test", Size: 300_000})
	sum := sha256.Sum256(content)
	agent := agentbin.Agent{Hash: hex.EncodeToString(sum[:]), Size: int64(len(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }}
	w := &through{t: t, machine: simulated.New(simulated.Options{Preset: simulated.Member, Hostname: "win-1",
		Agent: &simulated.Agent{Hash: agent.Hash, Main: sandbox.AgentMain(agent.Hash)}})}
	t.Cleanup(w.machine.Close)
	c, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w.cluster = c
	c.SetKubelets(sandbox.SimulatedKubelet(w.machine))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	err = errors.Join(c.Plant(windowsNode), c.WriteKubeconfig(kubeconfig), w.machine.AwaitUp(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	w.doc.Node.Metadata.Name = "Win-1"
	w.doc.Node.Spec.Credentials.Kubernetes = &v1alpha1.ThroughKubernetes{Kubeconfig: kubeconfig}
	w.options = node.Options{Agent: agent, Clusters: viapod.NewClusters(),
		StateFile: filepath.Join(t.TempDir(), "machines.json")}
	return w
}

func (w *through) connect() *node.Node {
	w.t.Helper()
	w.options.Clusters = viapod.NewClusters() // of another command
	n, err := node.Connect(w.t.Context(), w.doc, w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { n.Close() })
	return n
}

// pods returns the names of swdt's pods in the cluster.
func (w *through) pods() (names []string) {
	w.t.Helper()
	c, err := cluster.Open(cluster.Options{Kubeconfig: w.doc.Node.Spec.Credentials.Kubernetes.Kubeconfig})
	if err != nil {
		w.t.Fatal(err)
	}
	list, err := c.Clientset().CoreV1().Pods("swdt-system").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names
}

func hostname(t *testing.T, n *node.Node) string {
	t.Helper()
	facts, err := n.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return facts.GetHostname()
}

// nothingIsStaged fails the test if a file of the installation is left on the node.
func (w *through) nothingIsStaged() {
	w.t.Helper()
	files := w.machine.Spawn("test").Platform.Files
	left, err := files.List(`C:\Windows\System32\config\systemprofile`)
	if err != nil || len(left) != 0 {
		w.t.Errorf("left %v on the node, %v", left, err)
	}
}

func TestANodeIsReachedThroughItsCluster(t *testing.T) {
	w := newThrough(t)
	n := w.connect()
	if got := hostname(t, n); got != "win-1" {
		t.Errorf("the machine calls itself %q", got)
	}
	if got := w.pods(); len(got) != 1 {
		t.Errorf("pods %v, want one", got)
	}
	n.Close()
	if got := w.pods(); len(got) != 0 {
		t.Errorf("left the pods %v", got)
	}
	w.nothingIsStaged()
}

// The port of a container runtime's streaming server is reached through the same stream.
func TestAPortOfTheNodeIsReachedThroughItsCluster(t *testing.T) {
	n := newThrough(t).connect()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the simulated node shares loopback
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.Copy(conn, conn)
			conn.Close()
		}
	}()
	conn, err := n.DialPort(t.Context(), netip.MustParseAddrPort(listener.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "hello" {
		t.Errorf("the port answered %q, %v", got, err)
	}
}

// A restart of the kubelet ends the stream, as a push of kubelet does. The same pod carries the next one.
func TestARestartOfTheKubeletCutsTheStreamAndNotThePod(t *testing.T) {
	w := newThrough(t)
	n := w.connect()
	before := w.pods()
	services := w.machine.Spawn("test").Platform.Services
	if err := services.Stop(t.Context(), "kubelet"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-n.Lost():
	case <-t.Context().Done():
	}
	_, err := n.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
	var lost *node.LostError
	if !errors.As(err, &lost) {
		t.Fatalf("with a stopped kubelet: %v", err)
	}
	err = n.Reconnect(t.Context())
	if err == nil || node.IsHopeless(err) || !strings.Contains(err.Error(), "the service kubelet does not run") {
		t.Errorf("reconnect without a kubelet: %v", err)
	}
	if err := services.Start(t.Context(), "kubelet"); err != nil {
		t.Fatal(err)
	}
	for n.Reconnect(t.Context()) != nil {
		if t.Context().Err() != nil {
			t.Fatal("no way back")
		}
	}
	if got := hostname(t, n); got != "win-1" {
		t.Errorf("the machine calls itself %q", got)
	}
	if after := w.pods(); len(after) != 1 || after[0] != before[0] {
		t.Errorf("pods %v, before %v", after, before)
	}
}

// A restart of the API server ends all streams, and not the pod. While it is down the node is out of reach, and may be
// in reach later.
func TestARestartOfTheAPIServerCutsTheStreamAndNotThePod(t *testing.T) {
	w := newThrough(t)
	n := w.connect()
	before := w.pods()
	w.cluster.SetDown(true)
	select {
	case <-n.Lost():
	case <-t.Context().Done():
	}
	_, err := n.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
	var lost *node.LostError
	if !errors.As(err, &lost) {
		t.Fatalf("without an API server: %v", err)
	}
	err = n.Reconnect(t.Context())
	var unreachable *node.UnreachableError
	if !errors.As(err, &unreachable) || node.IsHopeless(err) {
		t.Errorf("reconnect without an API server: %v", err)
	}
	w.cluster.SetDown(false)
	if err := n.Reconnecting(t.Context(), ui.Discard{}, func(ctx context.Context) error {
		_, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if after := w.pods(); len(after) != 1 || after[0] != before[0] {
		t.Errorf("pods %v, before %v", after, before)
	}
}

// An API server that has restarted forbids everything until it has read its roles. A reconnection that it refuses may
// succeed later, unless the API server was ready before it refused.
func TestAnAPIServerThatStartsForbidsNothingForGood(t *testing.T) {
	for name, test := range map[string]struct {
		ready    bool // answers /readyz
		refusals int32
		want     func(err error) bool
	}{
		"it starts": {false, 2, func(err error) bool { return err != nil && !node.IsHopeless(err) }},
		"it becomes ready between its refusal and the question": {true, 1, func(err error) bool { return err == nil }},
		"it is ready": {true, 2, node.IsHopeless},
	} {
		t.Run(name, func(t *testing.T) {
			w := newThrough(t)
			n := w.connect()
			w.cluster.SetDown(true)
			select {
			case <-n.Lost():
			case <-t.Context().Done():
			}
			w.cluster.SetDown(false)
			var refused atomic.Int32
			w.cluster.OnRequest(func(r apiserver.Request) apiserver.Verdict {
				switch {
				case r.Path == "/readyz" && !test.ready:
					return apiserver.Verdict{Status: 500}
				case r.Resource == "pods" && refused.Add(1) <= test.refusals:
					return apiserver.Forbid()
				}
				return apiserver.Verdict{}
			})
			if err := n.Reconnect(t.Context()); !test.want(err) {
				t.Errorf("reconnect: %v", err)
			}
			w.cluster.OnRequest(nil)
			if err := n.Reconnect(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A command that ends while the API server is down cannot remove its pod. The next one does.
func TestAPodThatAnAPIServerWithoutAnAnswerKeeps(t *testing.T) {
	w := newThrough(t)
	n := w.connect()
	before := w.pods()
	w.cluster.SetDown(true)
	if err := n.Close(); err != nil {
		t.Log(err) // the stream is cut
	}
	w.cluster.SetDown(false)
	if left := w.pods(); len(left) != 1 || left[0] != before[0] {
		t.Fatalf("pods %v, before %v", left, before)
	}
	next := w.connect()
	if after := w.pods(); len(after) != 1 || after[0] == before[0] {
		t.Errorf("the next contact's pods %v, before %v", after, before)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if left := w.pods(); len(left) > 0 {
		t.Errorf("left the pods %v", left)
	}
}

// hostileKubelet answers each command as a node that wants to gain something.
type hostileKubelet struct {
	answer func(command []string, stdin io.Reader, stdout, stderr io.Writer) (int, error)
}

func (hostileKubelet) Starts(string) bool { return true }

func (k hostileKubelet) Exec(_ context.Context, _ string, command []string, stdin io.Reader, stdout,
	stderr io.Writer) (int, error) {
	return k.answer(command, stdin, stdout, stderr)
}

// The attacker is the node, or a proxy that answers for it. It must not make swdt run another program, or
// read without end.
func TestAHostileNodeBehindTheCluster(t *testing.T) {
	tests := map[string]struct {
		answer func(command []string, stdin io.Reader, stdout, stderr io.Writer) (int, error)
		want   string
	}{
		"another hash": {func(_ []string, stdin io.Reader, stdout, _ io.Writer) (int, error) {
			_, _ = io.Copy(io.Discard, io.LimitReader(stdin, 300_000))
			_, _ = io.WriteString(stdout, strings.Repeat("0", 64))
			return 0, nil
		}, "it is not what was sent"},
		"no hash": {func([]string, io.Reader, io.Writer, io.Writer) (int, error) { return 0, nil }, "it is not what was sent"},
		"a failure with escape sequences": {func(_ []string, _ io.Reader, _, stderr io.Writer) (int, error) {
			_, _ = io.WriteString(stderr, strings.Repeat("\x1b[2Jdisk full ", 10_000))
			return 1, nil
		}, "PowerShell in the pod ended with exit code 1: "},
		"a runtime that cannot start programs": {func([]string, io.Reader, io.Writer, io.Writer) (int, error) {
			return 0, errors.New("hcs: the system cannot find the file specified")
		}, "hcs: the system cannot find the file specified"},
		"output without end": {func(_ []string, _ io.Reader, stdout, _ io.Writer) (int, error) {
			for {
				if _, err := stdout.Write(make([]byte, 1<<20)); err != nil {
					return 1, err
				}
			}
		}, "the program in the pod prints more than 16 MiB"},
		"errors without end": {func(_ []string, _ io.Reader, stdout, stderr io.Writer) (int, error) {
			for range 64 { // 64 MiB
				if _, err := stderr.Write(make([]byte, 1<<20)); err != nil {
					return 1, err
				}
			}
			return 1, nil
		}, "PowerShell in the pod ended with exit code 1: "},
		"a stream that breaks each time": {func(_ []string, stdin io.Reader, _, _ io.Writer) (int, error) {
			_, _ = io.Copy(io.Discard, io.LimitReader(stdin, 1000))
			return 0, apiserver.ErrCut
		}, "put the agent on the node: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newThrough(t)
			var ran []string
			w.cluster.SetKubelets(hostileKubelet{func(command []string, stdin io.Reader, stdout,
				stderr io.Writer) (int, error) {
				ran = append(ran, command[0])
				return test.answer(command, stdin, stdout, stderr)
			}})
			_, err := node.Connect(t.Context(), w.doc, w.options)
			var unreachable *node.UnreachableError
			if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 2000 {
				t.Errorf("%.2000v, want %s", err, test.want)
			}
			for _, program := range ran { // the sending, and the removal of what was sent
				if program != commandline.PowerShell && program != "cmd.exe" {
					t.Errorf("started %s", program)
				}
			}
			if left := w.pods(); len(left) > 0 {
				t.Errorf("left the pods %v", left)
			}
		})
	}
}

// A user who may not exec gets the rule named, whichever protocol the API server checks first.
func TestAUserWhoMayNotExec(t *testing.T) {
	w := newThrough(t)
	w.cluster.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		if r.Subresource == "exec" {
			return apiserver.Forbid()
		}
		return apiserver.Verdict{}
	})
	_, err := node.Connect(t.Context(), w.doc, w.options)
	if err == nil || !node.IsHopeless(err) || !strings.Contains(err.Error(), "--subresource=exec -n swdt-system") {
		t.Errorf("%v", err)
	}
}
