//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/testing/cases"
)

// monitored is a Wine node with a stand-in for pktmon, which Wine lacks: see
// internal/platform/imitation/pktmonexe.
type monitored struct {
	info   sandboxInfo
	config string
	proxy  *proxy
}

func newMonitored(t *testing.T) *monitored {
	t.Helper()
	n := &monitored{info: wineSandbox(t)}
	n.proxy = newProxy(t, n.info.Hostname, 0)
	credentials := strings.Replace(credentialsOf(t, n.info), n.info.Hostname, n.proxy.address(), 1)
	n.config = nodeFile(t, credentials, "      []\n")
	for _, program := range []string{"pktmon", "vfpctrl"} {
		ok(t, "cp", "-c", n.config, "--accept-new-host-key", windowsProgram(t, program),
			`node:C:\windows\system32\`+program+`.exe`)
	}
	return n
}

func (n *monitored) path(windows string) string {
	return filepath.Join(n.info.Prefix, "drive_c", strings.ReplaceAll(strings.TrimPrefix(windows, `C:\`), `\`, "/"))
}

// driver is the state that the packet monitor's driver would keep.
type driver struct {
	Running bool
	Log     string
	Filters []struct{ Name string }
}

func (n *monitored) driver() (d driver) {
	for _, folder := range []string{"windows/temp", "windows/Temp"} {
		text, err := os.ReadFile(filepath.Join(n.info.Prefix, "drive_c", folder, "pktmon-state.json"))
		if err == nil && json.Unmarshal(text, &d) == nil {
			return d
		}
	}
	return d
}

// calls returns the command lines that pktmon received, with ID in place of the names of captures.
func (n *monitored) calls(t *testing.T) (lines []string) {
	t.Helper()
	text := ok(t, "exec", "-c", n.config, "--", "cmd", "/c", "type", `C:\windows\temp\pktmon-calls.txt`).stdout
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		for i, field := range fields {
			if strings.HasPrefix(field, "swdt-") {
				fields[i] = "swdt-ID"
			}
			if strings.HasPrefix(field, `C:\ProgramData\swdt\capture\`) {
				fields[i] = `ID` + field[strings.Index(field, "."):]
			}
		}
		lines = append(lines, strings.Join(fields, " "))
	}
	return lines
}

func (n *monitored) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	within(t, time.Minute, what, func() error {
		if condition() {
			return nil
		}
		return fmt.Errorf("the driver: %+v; agents: %v, guardians: %v", n.driver(),
			processesOf(t, n.info.Prefix, agentProcess), processesOf(t, n.info.Prefix, guardianProcess))
	})
}

// awaitClean waits until the node captures nothing, no filter is left, and every guardian has ended
// or only waits until swdt fetches the packets.
func (n *monitored) awaitClean(t *testing.T) {
	t.Helper()
	n.await(t, "the capture has ended and its filters are removed", func() bool {
		d := n.driver()
		return !d.Running && len(d.Filters) == 0
	})
	n.await(t, "the guardian has gone, or waits for the packets to be fetched", func() bool {
		if len(processesOf(t, n.info.Prefix, guardianProcess)) == 0 {
			return true
		}
		journal, err := os.ReadFile(filepath.Join(n.info.Prefix, "drive_c", "ProgramData", "swdt",
			"capture", "journal.json"))
		return err == nil && strings.Contains(string(journal), `"state":"done"`)
	})
}

// running is a running `swdt capture`.
type running struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	file           string
}

// begin starts a capture that runs until the test ends it, and returns when the node captures.
func (n *monitored) begin(t *testing.T) *running {
	t.Helper()
	r := &running{file: filepath.Join(t.TempDir(), "node.pcapng")}
	n.start(t, r, &r.stdout, "-w", r.file)
	return r
}

// start starts a capture with additional arguments, and returns when the node captures.
func (n *monitored) start(t *testing.T, r *running, stdout io.Writer, args ...string) {
	t.Helper()
	r.cmd = exec.Command(environment(t, "SWDT_BIN"),
		append([]string{"capture", "-c", n.config, "--ip", "192.168.15.167", "--proto", "udp"}, args...)...)
	r.cmd.Stdout, r.cmd.Stderr = stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.await(t, "the node captures", func() bool { d := n.driver(); return d.Running && len(d.Filters) == 1 })
}

func (r *running) end(t *testing.T) int {
	t.Helper()
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("swdt capture ended with %d\n%s%s", r.cmd.ProcessState.ExitCode(), r.stdout.String(), r.stderr.String())
	return r.cmd.ProcessState.ExitCode()
}

// TestCapture captures with the real agent under Wine, and opens the packets with
// Wireshark's own tools.
func TestCapture(t *testing.T) {
	t.Parallel()
	n := newMonitored(t)
	file := filepath.Join(t.TempDir(), "node.pcapng")
	r := ok(t, "capture", "-c", n.config, "--ip", "192.168.15.167", "--for", "1s", "-w", file)
	if !strings.Contains(r.stdout, "its time was over") {
		t.Errorf("r.stdout lacks %q:\n%s", "its time was over", r.stdout)
	}
	n.awaitClean(t)
	want := []string{
		"pktmon help", "pktmon start help", "pktmon list --json",
		"pktmon help", "pktmon start help", "pktmon status", "pktmon filter list",
		"pktmon filter add swdt-ID -i 192.168.15.167 -e",
		"pktmon start --capture --pkt-size 0 --file-name ID.etl --file-size 512 --log-mode circular",
		"pktmon status", // checks that the running capture is still swdt's
		"pktmon status", "pktmon stop", "pktmon status", "pktmon filter list", "pktmon filter remove",
		"pktmon filter list",
		"pktmon etl2pcap ID.etl --out ID.etl.packets.pcapng",
		"pktmon etl2pcap ID.etl --out ID.etl.drops.pcapng --drop-only",
		"pktmon etl2txt ID.etl --out ID.etl.txt",
	}
	if got := n.calls(t); !slices.Equal(got, want) {
		t.Errorf("pktmon was called with\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if out := run(t, "capinfos", "-c", "-M", file); !strings.Contains(out, "Number of packets:   6") {
		t.Errorf("capinfos: %s", out)
	}
	fields := run(t, "tshark", "-r", file, "-T", "fields", "-e", "frame.interface_name", "-e", "ip.src",
		"-e", "frame.comment")
	switch {
	case strings.Count(fields, "node/Container NIC 0a0fa7\t") != 4:
		t.Errorf("tshark: %q occurs %d times in fields, want %d:\n%s", "node/Container NIC 0a0fa7\t",
			strings.Count(fields, "node/Container NIC 0a0fa7\t"), 4, fields)
	case strings.Count(fields, "node/vmswitch.sys\t") != 2:
		t.Errorf("tshark: %q occurs %d times in fields, want %d:\n%s", "node/vmswitch.sys\t",
			strings.Count(fields, "node/vmswitch.sys\t"), 2, fields)
	case strings.Count(fields, "dropped: INET: transport endpoint was not found") != 1:
		t.Errorf("tshark: %q occurs %d times in fields, want %d:\n%s",
			"dropped: INET: transport endpoint was not found",
			strings.Count(fields, "dropped: INET: transport endpoint was not found"), 1, fields)
	case !strings.Contains(fields, "192.168.122.1\t"):
		t.Errorf("tshark: fields lacks %q:\n%s", "192.168.122.1\t", fields)
	}
	if text := ok(t, "capture", "-c", n.config, "--drops", "--for", "10s").stdout; !strings.Contains(text,
		"DROPPED: Filtered VLAN") {
		t.Errorf("live: %s", text)
	}
	n.awaitClean(t)
}

// TestACaptureNeverStays ends a capture in every possible way. Each time, the node stops
// capturing and removes the filters. The node needs the next contact for this only if both the
// capturing agent and its guardian were killed.
func TestACaptureNeverStays(t *testing.T) {
	t.Parallel()
	n := newMonitored(t)
	kill := func(t *testing.T, kind string) {
		for _, pid := range processesOf(t, n.info.Prefix, kind) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Logf("kill %s %d: %v", kind, pid, err)
			}
		}
	}
	for _, end := range cases.Of(t, []struct {
		name string
		run  func(t *testing.T)
	}{
		{"Ctrl-C", func(t *testing.T) {
			r := n.begin(t)
			if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if code := r.end(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if out := run(t, "capinfos", "-c", "-M", r.file); !strings.Contains(out, "Number of packets:   3") {
				t.Errorf("capinfos: %s", out)
			}
			n.awaitClean(t)
		}},
		{"kill -9 of swdt", func(t *testing.T) {
			r := n.begin(t)
			if err := r.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			n.awaitClean(t)
			r.end(t)
		}},
		{"the connection is cut", func(t *testing.T) {
			r := n.begin(t)
			n.proxy.cut()
			n.awaitClean(t)
			if code := r.end(t); code == 0 {
				t.Error("the capture is said to have gone well")
			}
		}},
		{"the network is silent", func(t *testing.T) {
			r := n.begin(t)
			if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			n.awaitClean(t)
			if err := r.cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			r.end(t)
		}},
		{"kill -9 of the agent", func(t *testing.T) {
			r := n.begin(t)
			kill(t, agentProcess)
			n.awaitClean(t)
			if code := r.end(t); code == 0 || !strings.Contains(r.stderr.String(), "the node ends the capture by itself") {
				t.Errorf("exit code %d", code)
			}
		}},
		{"kill -9 of the guardian", func(t *testing.T) {
			r := n.begin(t)
			kill(t, guardianProcess)
			n.awaitClean(t)
			if code := r.end(t); code != 0 || !strings.Contains(r.stdout.String(), "the guardian was interrupted") {
				t.Errorf("exit code %d", code)
			}
		}},
		{"kill -9 of both, and the next contact", func(t *testing.T) {
			r := n.begin(t)
			kill(t, guardianProcess)
			kill(t, agentProcess)
			r.end(t)
			ok(t, "exec", "-c", n.config, "--", "cmd", "/c", "ver")
			n.awaitClean(t)
		}},
	}, 3) {
		t.Run(end.name, end.run)
	}
	t.Run("its filters alone", func(t *testing.T) {
		ok(t, "exec", "-c", n.config, "--", "pktmon", "filter", "add", "theirs", "-p", "80")
		if r := swdt(t, "capture", "-c", n.config, "--for", "1s", "-w",
			filepath.Join(t.TempDir(), "x.pcapng")); r.code != 1 || !strings.Contains(r.stderr, "theirs") {
			t.Errorf("somebody else's filters: %s", r)
		}
		if d := n.driver(); len(d.Filters) != 1 || d.Filters[0].Name != "theirs" {
			t.Errorf("the filters: %+v", d.Filters)
		}
	})
}
