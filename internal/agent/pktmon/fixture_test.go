package pktmon_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/pktmon"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// node is a simulated machine with an agent that is only its guardian: the test
// calls the session's side of package pktmon.
type node struct {
	*simulated.Machine
	agent string // path of the agent's executable
}

func newNode(t *testing.T) *node {
	t.Helper()
	agent := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent", Version: "v0.0.0"})
	digest := sha256.Sum256(agent)
	sum := hex.EncodeToString(digest[:])
	m := simulated.New(simulated.Options{Agent: &simulated.Agent{Hash: sum, Main: guardianMain}})
	t.Cleanup(m.Close)
	n := &node{Machine: m, agent: layout.Agent(sum)}
	m.WriteFile(n.agent, agent)
	return n
}

func guardianMain(ctx context.Context, p *platform.Platform, executable string, args []string, _ io.Reader, _,
	stderr io.Writer) int {
	if len(args) != 2 || args[0] != pktmon.Argument {
		fmt.Fprintln(stderr, "not a guardian's arguments:", args)
		return 2
	}
	if err := pktmon.Guard(ctx, pktmon.Machine{Platform: p, Executable: executable}, args[1]); err != nil {
		return 1
	}
	return 0
}

// session names the agent's process that serves a session, to distinguish it
// from the guardian's process of the same executable.
const session = "session.exe"

// session returns the machine as a new process of the agent sees it.
func (n *node) session() (pktmon.Machine, *simulated.Process) {
	p := n.Spawn(session)
	return pktmon.Machine{Platform: p.Platform, Executable: n.agent}, p
}

// pktmon runs the machine's own pktmon.
func (n *node) pktmon(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	code, err := n.Process("somebody").Processes.Run(context.Background(),
		platform.Command{Path: "pktmon.exe", Args: args, Stdout: &out})
	if err != nil || code != 0 {
		t.Fatalf("pktmon %s: %d, %v: %s", strings.Join(args, " "), code, err, out.String())
	}
	return out.String()
}

func (n *node) captures(t *testing.T) bool {
	t.Helper()
	return !strings.Contains(n.pktmon(t, "status"), "is not running")
}

func (n *node) hasFilters(t *testing.T) bool {
	t.Helper()
	return !strings.Contains(n.pktmon(t, "filter", "list"), "None")
}

// guarded reports whether the guardian's service exists.
func (n *node) guarded(t *testing.T) bool {
	t.Helper()
	_, err := n.Process("look").Services.Status(context.Background(), layout.CaptureService)
	return !errors.Is(err, fault.ErrNoService)
}

// atWork reports whether the guardian's service exists and has not ended.
func (n *node) atWork(t *testing.T) bool {
	t.Helper()
	status, err := n.Process("look").Services.Status(context.Background(), layout.CaptureService)
	return err == nil && status.State != platform.Stopped
}

// checkClean checks that nothing captures and that nothing but packets is left
// of a capture.
func (n *node) checkClean(t *testing.T, when string) {
	t.Helper()
	eventually(t, when+": the guardian has done its work", func() bool { return !n.guarded(t) || n.done(t) })
	n.fetched(t)
	eventually(t, when+": the guardian has gone", func() bool { return !n.guarded(t) })
	if n.captures(t) {
		t.Errorf("%s: the node captures: %s", when, n.pktmon(t, "status"))
	}
	if n.hasFilters(t) {
		t.Errorf("%s: filters are left: %s", when, n.pktmon(t, "filter", "list"))
	}
}

// done reports whether the capture of the node's journal has ended.
func (n *node) done(t *testing.T) bool {
	t.Helper()
	file, err := n.Process("look").Files.Open(layout.CaptureJournal)
	if err != nil {
		return false
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	return err == nil && strings.Contains(string(data), `"state":"done"`)
}

// fetched removes the packets, as a session does after it has fetched them.
func (n *node) fetched(t *testing.T) {
	t.Helper()
	files := n.Process("fetches").Files
	for _, path := range n.packets(t) {
		if err := files.Remove(path); err != nil && !errors.Is(err, fault.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// packets returns the files of captures on the node.
func (n *node) packets(t *testing.T) (paths []string) {
	t.Helper()
	list, err := n.Process("look").Files.List(layout.Captures)
	if err != nil && !errors.Is(err, fault.ErrNotExist) {
		t.Fatal(err)
	}
	for _, file := range list {
		if strings.HasSuffix(file.Path, ".etl") || strings.HasSuffix(file.Path, ".txt") {
			paths = append(paths, file.Path)
		}
	}
	return paths
}

func plan(id string) captureplan.Plan {
	return captureplan.Plan{
		ID: id, Holder: "tester",
		Filters: [][]string{{"-i", "192.168.15.167", "-p", "53"}, {"-t", "ICMP"}},
		Start: []string{"start", "--capture", "--pkt-size", "0", "--file-name", captureplan.LogFile(id),
			"--file-size", "10"},
	}
}

func live(id string) captureplan.Plan {
	p := plan(id)
	p.Live, p.MaxText = true, 1<<20
	p.Start = []string{"start", "--capture", "--pkt-size", "0", "--log-mode", "real-time"}
	return p
}

// inRounds returns a plan that closes its log every two seconds.
func inRounds(id string) captureplan.Plan {
	p := plan(id)
	p.Round = 2 * time.Second
	return p
}

// eventually polls for a condition, for at most two minutes of the bubble's
// time.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		_ = wait.For(t.Context(), 10*time.Millisecond)
	}
}
