package swap_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const (
	containerdExe  = `C:\Program Files\containerd\bin\containerd.exe`
	containerdToml = `C:\Program Files\containerd\config.toml`
	kubeletExe     = `C:\k\kubelet.exe`
	healthz        = "http://127.0.0.1:10248/healthz"
	criPipe        = `\\.\pipe\containerd-containerd`
)

// node is a simulated machine with an agent that is only its guardian: the test
// calls the session's side of package swap.
type node struct {
	*simulated.Machine
	agent string // path of the agent's executable
}

func newNode(t *testing.T) *node {
	t.Helper()
	agent := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent", Version: "v0.0.0"})
	sum := hash(agent)
	m := simulated.New(simulated.Options{Agent: &simulated.Agent{Hash: sum, Main: guardianMain}})
	t.Cleanup(m.Close)
	n := &node{Machine: m, agent: layout.Agent(sum)}
	n.place(t, n.agent, agent)
	return n
}

func guardianMain(ctx context.Context, p *platform.Platform, executable string, args []string, _ io.Reader, _,
	stderr io.Writer) int {
	if len(args) != 2 || args[0] != "guardian" {
		fmt.Fprintln(stderr, "not a guardian's arguments:", args)
		return 2
	}
	if err := swap.Guard(ctx, swap.Machine{Platform: p, Executable: executable}, args[1]); err != nil {
		return 1
	}
	return 0
}

// session returns the machine as a new process of the agent sees it.
func (n *node) session() (swap.Machine, *simulated.Process) {
	p := n.Spawn("swdt-agent.exe")
	return swap.Machine{Platform: p.Platform, Executable: n.agent}, p
}

func (n *node) place(t *testing.T, path string, content []byte) {
	t.Helper()
	files := n.Process("setup").Files
	folder := path[:strings.LastIndex(path, `\`)]
	if err := files.MakeFolder(folder); err != nil {
		t.Fatal(err)
	}
	f, err := files.Create(path, platform.CreateTruncate)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// read returns a file's bytes; nil if there is none.
func (n *node) read(t *testing.T, path string) []byte {
	t.Helper()
	f, err := n.Process("look").Files.Open(path)
	if errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func (n *node) hashAt(t *testing.T, path string) string {
	content := n.read(t, path)
	if content == nil {
		return ""
	}
	return hash(content)
}

func (n *node) service(t *testing.T, name string) platform.ServiceStatus {
	t.Helper()
	status, err := n.Process("look").Services.Status(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// stage puts a new version of a component beside the old one and returns the
// component's plan.
func (n *node) stage(t *testing.T, name, destination string, content []byte) swap.Component {
	t.Helper()
	sum := hash(content)
	staged := layout.Staged(destination, sum)
	n.place(t, staged, content)
	return swap.Component{
		Name: name, Destination: destination, Service: name,
		Staged: staged, SHA256: sum, PreviousSHA256: n.hashAt(t, destination),
		StopTimeout: 5 * time.Second, StartTimeout: 5 * time.Second,
	}
}

func (n *node) stageContainerd(t *testing.T, version, fault string) swap.Component {
	c := n.stage(t, "containerd", containerdExe, binary("containerd", version, fault))
	c.Health = swap.Health{CRIPipe: criPipe, Timeout: 10 * time.Second}
	return c
}

// stageConfiguration stages a file that is replaced together with containerd
// and has no service.
func (n *node) stageConfiguration(t *testing.T, content string) swap.Component {
	c := n.stage(t, "config.toml", containerdToml, []byte(content))
	c.Service = ""
	return c
}

func (n *node) stageKubelet(t *testing.T, version, fault string) swap.Component {
	c := n.stage(t, "kubelet", kubeletExe, binary("kubelet", version, fault))
	c.Health = swap.Health{HTTPGet: healthz, Timeout: 10 * time.Second}
	c.AskVersion = true
	c.DependsOn = []string{"containerd"}
	return c
}

func binary(name, version, fault string) []byte {
	return simulated.Binary(simulated.BinarySpec{Name: name, Version: version, Fault: simulated.Fault(fault)})
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// push runs a plan to its outcome.
func (n *node) push(t *testing.T, components ...swap.Component) (swap.Outcome, []swap.Event) {
	t.Helper()
	m, p := n.session()
	defer p.Exit()
	id, err := swap.Begin(t.Context(), m, swap.Plan{Holder: "tester", Components: components})
	if err != nil {
		t.Fatal(err)
	}
	var events []swap.Event
	outcome, err := swap.Follow(t.Context(), m, id, func(e swap.Event) { events = append(events, e) })
	if err != nil {
		t.Fatal(err)
	}
	if err := swap.Acknowledge(t.Context(), m.Platform, id); err != nil {
		t.Fatal(err)
	}
	return outcome, events
}

// leftovers returns the files beside the destinations that no finished
// transaction may leave, the journals, and the guardian.
func (n *node) leftovers(t *testing.T) []string {
	t.Helper()
	p := n.Process("look")
	var found []string
	for _, destination := range []string{containerdExe, containerdToml, kubeletExe} {
		entries, err := p.Files.List(destination[:strings.LastIndex(destination, `\`)])
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if strings.Contains(entry.Path, ".swdt-") && !strings.HasSuffix(entry.Path, ".swdt-old") {
				found = append(found, entry.Path)
			}
		}
	}
	if _, err := p.Services.Status(context.Background(), layout.GuardianService); !errors.Is(err, fault.ErrNoService) {
		found = append(found, "service "+layout.GuardianService)
	}
	return found
}

// eventually polls for a condition, for at most a minute of the bubble's time.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		timer := time.NewTimer(10 * time.Millisecond)
		<-timer.C
	}
}

func equalBytes(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes (%.12s), want %d (%.12s)", what, len(got), hash(got), len(want), hash(want))
	}
}

func verbose(format string, args ...any) {
	if os.Getenv("SWDT_TEST_VERBOSE") != "" {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	}
}
