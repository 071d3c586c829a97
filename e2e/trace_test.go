//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writtenByHand is a configuration in a form that no encoder would write.
const writtenByHand = "# ours: comments, Windows' ends of lines, none at the last\r\n" +
	"version = 2\r\n\r\n[debug]   # quiet\r\n  level   = 'info'\r\n[plugins.\"io.containerd.gc.v1.scheduler\"]\r\n  " +
	"pause_threshold = 0.020"

// TestTraceOfRealContainerd switches the debug log of real containerds on and off again: their logs
// change both times, and their configuration is restored byte for byte. Versions that support
// tracing also send spans.
func TestTraceOfRealContainerd(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.6.27", "1.7.12", "2.4.2"} {
		t.Run(version, func(t *testing.T) {
			n := tracedNode(t, version)
			if strings.Contains(n.log(), "level=debug") {
				t.Fatal("it logs at debug before anybody asked for it")
			}
			ok(t, "trace", "on", "-c", n.config)
			if !strings.Contains(n.newLog(), "level=debug") {
				t.Errorf("nothing is logged at debug:\n%s", n.log())
			}
			if n.toml() == writtenByHand {
				t.Error("the configuration is as it was")
			}
			again := ok(t, "trace", "on", "-c", n.config)
			if !strings.Contains(again.stdout, "nothing to do") {
				t.Errorf("again: %s", again.stdout)
			}
			ok(t, "trace", "off", "-c", n.config)
			n.newLog() // skip the lines about containerd's end, which still have level debug
			n.isAsBefore()
			ok(t, "exec", "-c", n.config, "--", `C:\criversion.exe`)
			if log := n.newLog(); strings.Contains(log, "level=debug") {
				t.Errorf("it still logs at debug:\n%s", log)
			}
			n.spans(t, version)
		})
	}
}

// tracedNodeAt is a Wine node with a containerd whose configuration is writtenByHand.
type tracedNodeAt struct {
	t           *testing.T
	config      string
	commandLine string
	read        int // bytes of the log that were read
}

func tracedNode(t *testing.T, version string) *tracedNodeAt {
	t.Helper()
	info := wineSandboxNamed(t, "trace")
	n := &tracedNodeAt{t: t, config: nodeFile(t, credentialsOf(t, info), containerdProvisioner(t, version))}
	ok(t, "push", "-c", n.config, "--accept-new-host-key")
	ok(t, "cp", "-c", n.config, windowsProgram(t, "criversion"), `node:C:\criversion.exe`)
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte(writtenByHand), 0o600); err != nil {
		t.Fatal(err)
	}
	ok(t, "cp", "-c", n.config, file, `node:C:\Program Files\containerd\config.toml`)
	ok(t, "exec", "-c", n.config, "--", containerdExe, "--register-service", "--log-file", `C:\containerd.log`)
	ok(t, "exec", "-c", n.config, "--", "net", "start", "containerd")
	ok(t, "exec", "-c", n.config, "--", `C:\criversion.exe`)
	n.commandLine = n.service()
	return n
}

// get returns the content of a file of the node.
func (n *tracedNodeAt) get(path string) string {
	n.t.Helper()
	local := filepath.Join(n.t.TempDir(), "file")
	ok(n.t, "cp", "-c", n.config, "node:"+path, local)
	content, err := os.ReadFile(local)
	if err != nil {
		n.t.Fatal(err)
	}
	return string(content)
}

func (n *tracedNodeAt) toml() string { return n.get(`C:\Program Files\containerd\config.toml`) }
func (n *tracedNodeAt) log() string  { return n.get(`C:\containerd.log`) }

// newLog returns the text that containerd has logged since the last call of newLog.
func (n *tracedNodeAt) newLog() string {
	n.t.Helper()
	log := n.log()
	fresh := log[min(n.read, len(log)):]
	n.read = len(log)
	return fresh
}

func (n *tracedNodeAt) service() string {
	n.t.Helper()
	r := ok(n.t, "exec", "-c", n.config, "--", "reg", "query", `HKLM\SYSTEM\CurrentControlSet\Services\containerd`,
		"/v", "ImagePath")
	return r.stdout
}

func (n *tracedNodeAt) isAsBefore() {
	n.t.Helper()
	if got := n.toml(); got != writtenByHand {
		n.t.Errorf("the configuration is not as it was:\n%q", got)
	}
	if got := n.service(); got != n.commandLine {
		n.t.Errorf("the command line is not as it was:\n%s", got)
	}
	r := ok(n.t, "exec", "-c", n.config, "--", "cmd", "/c", "dir", "/b", `C:\Program Files\containerd`)
	if strings.Contains(r.stdout, "swdt") {
		n.t.Errorf("something is left: %s", r.stdout)
	}
}

// spans makes containerd send its spans to a collector of the test. For containerd 2, it checks that
// swdt refuses and changes nothing.
func (n *tracedNodeAt) spans(t *testing.T, version string) {
	arrived := make(chan string, 64)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case arrived <- r.Method + " " + r.URL.Path:
		default:
		}
	}))
	defer collector.Close()
	on := swdt(t, "trace", "on", "containerd", "-c", n.config, "--otlp", collector.URL)
	if strings.HasPrefix(version, "2.") {
		if on.code == 0 || !strings.Contains(on.stderr, "OTEL_EXPORTER_OTLP_ENDPOINT") {
			t.Errorf("containerd %s: %s", version, on)
		}
		n.isAsBefore()
		return
	}
	if on.code != 0 {
		t.Fatal("the spans cannot be switched on")
	}
	ok(t, "exec", "-c", n.config, "--", `C:\criversion.exe`) // the call causes a span
	select {
	case got := <-arrived:
		if got != "POST /v1/traces" {
			t.Errorf("the collector got %s", got)
		}
	case <-time.After(time.Minute):
		t.Error("no span arrived within a minute")
	}
	ok(t, "trace", "off", "-c", n.config)
	n.isAsBefore()
}

// TestTraceOfRealKubelet switches the verbosity of a kubelet that serves a cluster
// on and off again: its log changes both times, the node is Ready both times,
// and its service's command line is exactly the one that the join made.
func TestTraceOfRealKubelet(t *testing.T) {
	c := clusterSandbox(t)
	file := c.joinFile(t, credentialsOf(t, c.sandboxInfo), joinWith{})
	join := func() stepsReport {
		return decoded[stepsReport](t, ok(t, "join", "-c", file, "--kubeconfig", c.Kubeconfig,
			"--allow-reboot", "-o", "json"))
	}
	join()
	c.expectNode(t, "wine-1", "Ready")
	service := func() string {
		return ok(t, "exec", "-c", file, "--", "reg", "query", `HKLM\SYSTEM\CurrentControlSet\Services\kubelet`, "/v",
			"ImagePath").stdout
	}
	log := newLogOf(t, c.log("kubelet/kubelet.log"))
	before := service()

	ok(t, "trace", "on", "kubelet", "-c", file, "--v", "5")
	log.await(`FLAG: --v="5"`, "SyncLoop (housekeeping)") // the second line has verbosity 4
	c.expectNode(t, "wine-1", "Ready")
	if talks := service(); talks == before || !strings.Contains(talks, "--v=5") {
		t.Errorf("the command line while it is on: %s", talks)
	}
	if status := ok(t, "trace", "status", "-c", file); !strings.Contains(status.stdout, "kubelet") {
		t.Errorf("status: %s", status.stdout)
	}
	if again := join(); again.Summary.Unchanged != 1 {
		t.Errorf("a join while it is on changes %v", again.changed())
	}

	log.forget()
	ok(t, "trace", "off", "kubelet", "-c", file)
	if after := service(); after != before {
		t.Errorf("the command line was\n%s\nand is\n%s", before, after)
	}
	log.await(`FLAG: --v="2"`, "Started kubelet")
	c.expectNode(t, "wine-1", "Ready")
	if _, later, _ := strings.Cut(log.fresh(), "Started kubelet"); strings.Contains(later, "SyncLoop (housekeeping)") {
		t.Errorf("it still logs at another verbosity:\n%s", later)
	}
	if again := join(); again.Summary.Unchanged != 1 {
		t.Errorf("a join afterwards changes %v", again.changed())
	}
}

// logOf reads a log file of a node from an offset on.
type logOf struct {
	t    *testing.T
	path string
	read int // bytes
}

func newLogOf(t *testing.T, path string) *logOf {
	l := &logOf{t: t, path: path}
	l.forget()
	return l
}

func (l *logOf) content() string {
	l.t.Helper()
	content, err := os.ReadFile(l.path)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(content)
}

// forget skips everything that was logged so far.
func (l *logOf) forget() { l.read = len(l.content()) }

// fresh returns everything logged since the last forget.
func (l *logOf) fresh() string {
	content := l.content()
	return content[min(l.read, len(content)):]
}

// await waits until all of these texts are logged.
func (l *logOf) await(texts ...string) {
	l.t.Helper()
	eventually(l.t, "the log", func() error {
		fresh := l.fresh()
		for _, text := range texts {
			if !strings.Contains(fresh, text) {
				return fmt.Errorf("no %q in %s:\n%s", text, l.path, fresh)
			}
		}
		return nil
	})
}
