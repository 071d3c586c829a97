//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/hns/hnstest"
	"github.com/swdt-dev/swdt/internal/testing/cases"
)

// streaming is a running `swdt capture -w -`, with tshark at the other end of its
// pipe.
type streaming struct {
	running
	tshark *exec.Cmd
	lines  *bufio.Reader // tshark's output, a line for each packet
	noise  bytes.Buffer
}

// stream starts a capture in rounds that runs until the test ends it, and returns when the node
// captures.
func (n *monitored) stream(t *testing.T) *streaming {
	t.Helper()
	s := &streaming{}
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.tshark = exec.Command("tshark", "-l", "-r", "-", "-T", "fields", "-e", "frame.interface_name", "-e", "ip.src",
		"-e", "frame.comment")
	s.tshark.Stdin, s.tshark.Stderr = from, &s.noise
	shown, err := s.tshark.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.tshark.Start(); err != nil {
		t.Fatal(err)
	}
	s.lines = bufio.NewReader(shown)
	n.start(t, &s.running, to, "-w", "-", "--round", "1s")
	for _, end := range []*os.File{from, to} { // tshark and swdt have their own copies
		if err := end.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// next returns tshark's lines for the next count packets.
func (s *streaming) next(t *testing.T, count int) (lines []string) {
	t.Helper()
	for range count {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d packets: %v; swdt: %s; tshark: %s", len(lines), err, s.stderr.String(), s.noise.String())
		}
		lines = append(lines, line)
	}
	return lines
}

// TestPacketsWhileTheyAreCaptured checks that tshark shows the packets that swdt writes into
// tshark's pipe while the node still captures. After that, swdt ends in several ways, and the node
// stops capturing each time.
func TestPacketsWhileTheyAreCaptured(t *testing.T) {
	t.Parallel()
	n := newMonitored(t)
	t.Run("Ctrl-C", func(t *testing.T) { n.streamUntilCtrlC(t) })
	t.Run("its time", func(t *testing.T) { n.streamForATime(t) })
	for _, c := range cases.Of(t, []struct {
		name   string
		quiet  bool // an end that is no failure, as of swdt capture -w - | head
		strike func(t *testing.T, s *streaming) error
	}{
		{"kill -9 of swdt", false, func(_ *testing.T, s *streaming) error { return s.cmd.Process.Kill() }},
		{"the reader goes away", true, func(_ *testing.T, s *streaming) error { return s.tshark.Process.Kill() }},
		{"the connection is cut", false, func(*testing.T, *streaming) error { n.proxy.cut(); return nil }},
		{"kill -9 of the guardian", false, func(t *testing.T, _ *streaming) error {
			for _, pid := range processesOf(t, n.info.Prefix, guardianProcess) {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Logf("kill the guardian, %d: %v", pid, err)
				}
			}
			return nil
		}},
	}, 2) {
		t.Run(c.name, func(t *testing.T) {
			s := n.stream(t)
			s.next(t, 3)
			if err := c.strike(t, s); err != nil {
				t.Fatal(err)
			}
			n.awaitClean(t)
			code := s.end(t)
			told := strings.Contains(s.stderr.String(), "the guardian was interrupted")
			if (code == 0) != (told || c.quiet) {
				t.Errorf("exit code %d", code)
			}
			_ = s.tshark.Wait() // the strike may have killed tshark
		})
	}
}

func (n *monitored) streamUntilCtrlC(t *testing.T) {
	s := n.stream(t)
	text := strings.Join(s.next(t, 9), "") // three packets in each round
	switch {
	case strings.Count(text, "dropped: INET: transport endpoint was not found") != 3:
		t.Errorf("%q occurs %d times in text, want %d:\n%s", "dropped: INET: transport endpoint was not found",
			strings.Count(text, "dropped: INET: transport endpoint was not found"), 3, text)
	case !strings.Contains(text, "node/Container NIC 0a0fa7\t192.168.15.167"):
		t.Errorf("text lacks %q:\n%s", "node/Container NIC 0a0fa7\t192.168.15.167", text)
	}
	if s.cmd.ProcessState != nil {
		t.Error("the capture had ended when packets came")
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := s.end(t); code != 0 || !strings.Contains(s.stderr.String(),
		"rounds; between them nothing was captured") {
		t.Errorf("exit code %d", code)
	}
	n.awaitClean(t)
	if err := s.tshark.Wait(); err != nil {
		t.Errorf("tshark: %v: %s", err, s.noise.String())
	}
	if list := ok(t, "exec", "-c", n.config, "--", "cmd", "/c", "dir", "/b",
		`C:\ProgramData\swdt\capture`).stdout; strings.Contains(list, ".etl") {
		t.Errorf("left on the node: %s", list)
	}
}

func (n *monitored) streamForATime(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "stream.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	s := &running{}
	n.start(t, s, out, "-w", "-", "--round", "1s", "--for", "3s")
	if code := s.end(t); code != 0 || !strings.Contains(s.stderr.String(), "its time was over") {
		t.Errorf("exit code %d", code)
	}
	n.awaitClean(t)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	packets := strings.Count(run(t, "tshark", "-r", out.Name(), "-T", "fields", "-e", "frame.interface_name"), "node/")
	if packets%3 != 0 || packets == 0 { // a slow node ends one round in this time, of which each has three packets
		t.Errorf("%d packets", packets)
	}
}

// TestVFP runs a stand-in for vfpctrl through the real agent. The stand-in's switch has the ports
// of a Calico node's endpoints.
func TestVFP(t *testing.T) {
	t.Parallel()
	n := newMonitored(t)
	fixture := hnstest.Calico()
	if err := fixture.WriteTo(n.path(`C:\ProgramData\swdt-hns`)); err != nil {
		t.Fatal(err)
	}
	state := hns.Parse(fixture.Documents())
	switch text := ok(t, "capture", "vfp", "-c", n.config).stdout; {
	case !strings.HasPrefix(text, "PORT "):
		t.Errorf("text does not begin with %q:\n%s", "PORT ", text)
	case !strings.Contains(text, "ExternalPort"):
		t.Errorf("text lacks %q:\n%s", "ExternalPort", text)
	case !strings.Contains(text, "DroppedAcl: 2"):
		t.Errorf("text lacks %q:\n%s", "DroppedAcl: 2", text)
	}
	report := decoded[struct {
		Nodes []struct {
			Answer []struct {
				Port, Label, Endpoint string
				Counters              []struct{ Counts map[string]uint64 }
			}
		}
	}](t, ok(t, "capture", "vfp", "-c", n.config, "-o", "json"))
	if len(report.Nodes) != 1 {
		t.Fatalf("%d nodes in the report", len(report.Nodes))
	}
	ports := report.Nodes[0].Answer
	owned := map[string]bool{}
	for _, p := range ports {
		switch {
		case len(p.Counters) != 2:
			t.Errorf("p.Counters has %d elements, want 2: %v", len(p.Counters), p.Counters)
		case p.Counters[0].Counts["TotalPackets"] == 0:
			t.Error(`p.Counters[0].Counts["TotalPackets"] is 0`)
		}
		owned[p.Endpoint] = true
	}
	for _, e := range state.Endpoints {
		if owned[e.ID] == e.Remote {
			t.Errorf("endpoint %s, remote %v, has a port: %v", e.ID, e.Remote, owned[e.ID])
		}
	}
	one := ok(t, "capture", "vfp", "-c", n.config, "--vfp-port", strings.ToLower(ports[0].Port)).stdout
	switch {
	case strings.Count(one, ports[0].Port) != 3:
		t.Errorf("%q occurs %d times in one, want %d:\n%s", ports[0].Port, strings.Count(one, ports[0].Port), 3, one)
	case !strings.Contains(one, "TcpConnectionsVerified"):
		t.Errorf("one lacks %q:\n%s", "TcpConnectionsVerified", one)
	}
	// An older vfpctrl prints text.
	if err := os.WriteFile(n.path(`C:\windows\temp\vfpctrl-plain.txt`), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := ok(t, "capture", "vfp", "-c", n.config).stdout; !strings.Contains(text, "Dropped ACL packets: 2") {
		t.Errorf("text lacks %q:\n%s", "Dropped ACL packets: 2", text)
	}
}
