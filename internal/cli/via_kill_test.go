package cli_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// cutStory passes a process's story on, and calls cut once when a line begins with a text.
type cutStory struct {
	mu   sync.Mutex
	text bytes.Buffer
	at   string
	cut  func()
}

func (c *cutStory) Write(data []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(data)
	if c.at != "" && strings.Contains(c.text.String(), c.at) {
		c.cut()
	}
	return len(data), nil
}

func (c *cutStory) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// viaStage is a moment of a push: a line of its story, or a request to the API server.
type viaStage struct {
	name, line string
	request    func(apiserver.Request) bool
	pushes     bool // swdt has begun to push
}

func viaStages() []viaStage {
	asks := func(verb, subresource string) func(apiserver.Request) bool {
		return func(r apiserver.Request) bool {
			return r.Resource == "pods" && r.Verb == verb && r.Subresource == subresource && r.Name != "" == (verb == "get")
		}
	}
	return []viaStage{
		{"before the pod", "starting a pod on", nil, false},
		{"as the pod is made", "", asks("create", ""), false},
		{"while the pod starts", "", asks("get", ""), false},
		{"as the agent is sent", "", asks("get", "exec"), false},
		{"in the middle of a push", "sending kubelet", nil, true},
		{"while kubelet is replaced", "replacing", nil, true},
	}
}

// run runs a push in a process of its own and sends it a signal at a stage.
func (m *mixed) run(stage viaStage, signal os.Signal) (code int, story string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 2*time.Minute)
	defer cancel()
	var once sync.Once
	command := exec.CommandContext(ctx, "swdt", "push", "-c", "push.yaml", "-n", "win-1", "--via", m.via)
	started := make(chan struct{})
	cut := func() {
		<-started
		once.Do(func() { _ = command.Process.Signal(signal) }) // fails if it has ended
	}
	said := &cutStory{at: stage.line, cut: cut}
	command.Stderr, command.Stdout = said, said
	m.cluster.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		if stage.request != nil && stage.request(r) {
			cut()
		}
		if r.Resource == "pods" && r.Verb == "delete" {
			return apiserver.Verdict{Delay: slowOperation}
		}
		return apiserver.Verdict{}
	})
	defer m.cluster.OnRequest(nil)
	if err := command.Start(); err != nil {
		m.t.Fatal(err)
	}
	close(started)
	_ = command.Wait() // see the exit code
	return command.ProcessState.ExitCode(), said.String()
}

// left returns the pods and the records that swdt has left.
func (m *mixed) left() (all []string) {
	m.t.Helper()
	c, err := cluster.Open(cluster.Options{Kubeconfig: strings.TrimPrefix(m.via, "kubernetes,kubeconfig=")})
	if err != nil {
		m.t.Fatal(err)
	}
	pods, err := c.Clientset().CoreV1().Pods("swdt-system").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	for _, pod := range pods.Items {
		all = append(all, "pod "+pod.Name)
	}
	records, err := filepath.Glob(filepath.Join(os.Getenv("XDG_DATA_HOME"), "swdt", "via", "*"))
	if err != nil {
		m.t.Fatal(err)
	}
	return append(all, records...)
}

// A swdt that is killed leaves at most a pod and a record, which the next command removes; the node is well. After
// Ctrl-C nothing is left at once.
func TestAProcessEndedAtEachStageOfThePod(t *testing.T) {
	for name, signal := range map[string]os.Signal{"killed": os.Kill, "interrupted": os.Interrupt} {
		for _, stage := range viaStages() {
			t.Run(name+" "+stage.name, func(t *testing.T) {
				m := newMixed(t)
				writePush(t)
				code, story := m.run(stage, signal)
				if left := m.left(); signal == os.Interrupt && (code != 130 || len(left) > 0) {
					t.Errorf("exit code %d, left %v\n%s", code, left, story)
				}
				if signal == os.Kill && code != -1 {
					t.Fatalf("was not killed: exit code %d\n%s", code, story)
				}
				if code, _, stderr := m.swdt("status", "-c", "push.yaml", "-n", "win-1"); code != 0 {
					t.Errorf("status: exit code %d\n%s", code, stderr)
				}
				if left := m.left(); len(left) > 0 {
					t.Errorf("the next command left %v", left)
				}
				if !stage.pushes {
					return
				}
				code, stdout, stderr := m.swdt("push", "-c", "push.yaml", "-n", "win-1")
				if code != 0 || len(m.left()) > 0 {
					t.Errorf("push: exit code %d, left %v\n%s%s", code, m.left(), stdout, stderr)
				}
				code, stdout, stderr = m.swdt("status", "-c", "push.yaml", "-n", "win-1", "-o", "json")
				if code != 0 || !strings.Contains(stdout, "1.36.9") || !strings.Contains(stdout, `"pendingJournal": false`) {
					t.Errorf("status: exit code %d\n%s%s", code, stdout, stderr)
				}
			})
		}
	}
}

// writePush writes a node file that replaces the kubelet.
func writePush(t *testing.T) {
	t.Helper()
	file := "apiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: win-1}\nspec:\n" +
		"  credentials: {kubernetes: {}}\n  kubernetes: {provisioners: [{name: kubelet, sourceURL: kubelet.exe, " +
		`destination: 'C:\k\kubelet.exe', overwrite: true}]}` + "\n"
	binary := simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: "v1.36.9"})
	for name, content := range map[string][]byte{"push.yaml": []byte(file), "kubelet.exe": binary} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
