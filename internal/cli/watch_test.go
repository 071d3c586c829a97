package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/ui"
)

// transcript collects the output of a command in the background.
type transcript struct {
	mutex sync.Mutex
	text  bytes.Buffer
	grown chan struct{}
}

func newTranscript() *transcript { return &transcript{grown: make(chan struct{}, 1)} }

func (s *transcript) Write(p []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	select {
	case s.grown <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *transcript) String() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.String()
}

// await waits until the output matches the pattern n times.
func (s *transcript) await(t *testing.T, pattern string, n int) []string {
	t.Helper()
	wanted := regexp.MustCompile("(?m)" + pattern)
	limit := time.After(30 * time.Second)
	for {
		if found := wanted.FindAllString(s.String(), -1); len(found) >= n {
			return found
		}
		select {
		case <-s.grown:
		case <-limit:
			t.Fatalf("%q does not stand %d times in:\n%s", pattern, n, s)
		}
	}
}

// watched is a command that runs until Ctrl-C, such as `swdt push --watch`, in the background.
type watched struct {
	*workplace
	stdout, stderr *transcript
	interrupt      func()
	code           chan int
}

func (w *workplace) watch(args ...string) *watched {
	w.t.Helper()
	return w.background(append([]string{"push", "--watch"}, args...)...)
}

// background runs a command until the test ends.
func (w *workplace) background(args ...string) *watched {
	w.t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background()) // outlives the test: Cleanup ends it
	run := &watched{workplace: w, stdout: newTranscript(), stderr: newTranscript(), code: make(chan int, 1)}
	run.interrupt = func() { cancel(&cli.InterruptedError{Signal: "test"}) }
	args = append(args, "-c", filepath.Join(w.folder, "swdt.yaml"))
	environment := cli.Environment{Agent: agent, Getenv: func(string) string { return "" }}
	go func() {
		run.code <- cli.Run(ctx, ui.Streams{Out: run.stdout, Err: run.stderr}, args, environment)
	}()
	w.t.Cleanup(func() {
		run.interrupt()
		if code := <-run.code; code != 130 {
			w.t.Errorf("exit code %d: %s", code, run.stderr)
		}
	})
	return run
}

// replace links a new executable beside the old one and renames it over the old one, as
// linkers do.
func (w *workplace) replace(name string, spec simulated.BinarySpec) {
	w.t.Helper()
	w.write(name+".new", simulated.Binary(spec))
	path := filepath.Join(w.folder, name)
	if err := os.Rename(path+".new", path); err != nil {
		w.t.Fatal(err)
	}
}

func TestWatch(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	run := w.watch()
	const hash = `[0-9a-f]{6,}`
	run.stdout.await(t, `^\d\d:\d\d:\d\d kubelet  .*healthy`, 1)
	run.stdout.await(t, `^\d\d:\d\d:\d\d containerd  .*healthy`, 1)

	w.replace("kubelet.exe", simulated.BinarySpec{Name: "kubelet", Version: "1.0.1"})
	run.stdout.await(t, `^\d\d:\d\d:\d\d kubelet  `+hash+` → `+
		hash+`  .*\(sent .*\)  push \S+  down \S+  healthy \S+$`, 2)

	// A binary that does not become healthy is rolled back, reported once, and not tried again.
	w.replace("kubelet.exe", simulated.BinarySpec{Name: "kubelet", Version: "1.0.2", Fault: simulated.CrashAtStart})
	run.stderr.await(t, `^\d\d:\d\d:\d\d kubelet  failed: .*back to the previous binaries`, 1)
	w.replace("kubelet.exe", simulated.BinarySpec{Name: "kubelet", Version: "1.0.3"})
	run.stdout.await(t, `kubelet  `+hash+` → `+hash+`  `, 3)
	if n := strings.Count(run.stderr.String(), "failed: "); n != 1 {
		t.Errorf("reported %d failures, want 1: %s", n, run.stderr)
	}
}

func TestWatchBuilds(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	file, err := os.ReadFile(filepath.Join(w.folder, "swdt.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const build = `, build: {dir: src, command: 'if grep bad *.go; then exit 3; fi; echo built; ` +
		`cp next ../kubelet.new && mv ../kubelet.new ../kubelet.exe', env: {A: b}}}`
	text := strings.Replace(string(file), `'C:\k\kubelet.exe', health: {settle: 5ms}}`,
		`'C:\k\kubelet.exe', health: {settle: 5ms}`+build, 1)
	w.write("swdt.yaml", []byte(text))
	source := func(content, version string) {
		w.write("src/next", simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: version}))
		w.write("src/main.go", []byte(content))
	}
	if err := os.Mkdir(filepath.Join(w.folder, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	source("one", "2.0.0")

	once := &lines{}
	if code, stdout := w.swdt(t.Context(), once, "push", "--build"); code != 0 || !strings.Contains(stdout, "2.0.0") {
		t.Fatalf("exit code %d: %s%s", code, once, stdout)
	}
	source("bad", "2.0.1")
	once = &lines{}
	switch code, _ := w.swdt(t.Context(), once, "push", "--build"); {
	case code != 1:
		t.Fatalf("code = %v, want 1", code)
	case strings.Count(once.String(), "bad\n") != 1:
		t.Fatalf("strings.Count(once.String(), \"bad\\n\") = %v, want 1", strings.Count(once.String(), "bad\n"))
	case !strings.Contains(once.String(), "exit code 3"):
		t.Fatalf("once.String() lacks %q:\n%s; exit code %d: %s", "exit code 3", once.String(), code, once)
	}

	run := w.watch()
	run.stderr.await(t, `^\d\d:\d\d:\d\d kubelet  build failed after .*: exit code 3\nbad$`, 1)
	source("three!", "2.0.3")
	run.stdout.await(t, `kubelet  .*  build \S+  push`, 1)
	source("four!!", "2.0.4")
	run.stdout.await(t, `kubelet  .*  build \S+  push`, 2)
	if strings.Contains(run.stderr.String(), "built") {
		t.Errorf("shows the output of builds that succeed: %s", run.stderr)
	}
}

// A newer binary appears while swdt sends one: the services never get the older one, and
// no part of it stays on the node.
func TestWatchSupersedes(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	run := w.watch("--log-format", "json")
	run.stderr.await(t, `"event":"pushed"`, 2)

	superseded, sending := make(chan struct{}), sync.OnceFunc(func() {
		w.replace("kubelet.exe", simulated.BinarySpec{Name: "kubelet", Version: "1.0.2"})
	})
	w.machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpWrite && strings.Contains(op.Target, ".exe.swdt-") {
			sending()
			<-superseded
		}
		return simulated.Continue()
	})
	w.replace("kubelet.exe", simulated.BinarySpec{Name: "kubelet", Version: "1.0.1"})
	run.stderr.await(t, `"event":"superseded"`, 1)
	close(superseded)
	run.stderr.await(t, `"event":"pushed".*"component":"kubelet"`, 2)

	log := run.stderr.String()
	if n := strings.Count(log, `"event":"committing","node":"win","component":"kubelet"`); n != 2 {
		t.Errorf("%d transactions with kubelet: %s", n, log)
	}
	if strings.Contains(log, `"event":"failed"`) {
		t.Errorf("reported a failure, want none: %s", log)
	}
	w.consistent("superseded")
	for path := range w.machine.Snapshot(`C:\k`) {
		if strings.Contains(path, ".part") || strings.Count(path, ".swdt-") > 0 &&
			!strings.Contains(path, ".swdt-old") {
			t.Errorf("left behind: %s", path)
		}
	}
}

// Two nodes get the same binary. A third one that cannot be reached does not delay them.
func TestWatchSeveralNodes(t *testing.T) {
	w := &workplace{t: t, folder: t.TempDir()}
	var file strings.Builder
	for _, name := range []string{"win-1", "win-2", "win-3"} {
		_, document, unplug := simulatedNode(t, name, w.folder)
		file.WriteString(document + "---\n")
		if name == "win-3" {
			unplug()
		}
	}
	w.write("swdt.yaml", []byte(file.String()))
	w.build("1.0.0")
	run := w.watch("--only", "kubelet")
	for i, version := range []string{"1.0.0", "1.0.1"} {
		w.replace("kubelet.exe", simulated.BinarySpec{Name: "kubelet", Version: version})
		run.stdout.await(t, `^\d\d:\d\d:\d\d win-1 kubelet  .*healthy`, i+1)
		run.stdout.await(t, `^\d\d:\d\d:\d\d win-2 kubelet  .*healthy`, i+1)
	}
	run.stderr.await(t, `^\d\d:\d\d:\d\d win-3 failed: .*connection refused.*; trying again`, 1)
	if n := strings.Count(run.stderr.String(), "win-3 failed"); n != 1 {
		t.Errorf("reported the same failure %d times, want once: %s", n, run.stderr)
	}
	if strings.Contains(run.stdout.String(), "containerd") {
		t.Errorf("pushed what was not asked for: %s", run.stdout)
	}
}

// The connection breaks while nothing is pushed: swdt connects again before it needs the
// connection.
func TestWatchReconnects(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	run := w.watch("--log-format", "json")
	run.stderr.await(t, `"event":"pushed"`, 2)
	w.machine.PowerCut()
	run.stderr.await(t, `"event":"lost"`, 1)
	run.stderr.await(t, `"event":"connected"`, 2)
	w.build("1.0.1")
	run.stderr.await(t, `"event":"pushed".*"component":"kubelet"`, 2)
}

// Measures the time that swdt itself adds to the push of a rebuild: everything from the
// file's last byte to a healthy service except sending, stopping and starting.
func TestWatchOverhead(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	run := w.watch("--log-format", "json", "-o", "json")
	run.stderr.await(t, `"event":"pushed"`, 2)
	const rounds = 5
	for i := range rounds {
		w.write("kubelet.new",
			simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: fmt.Sprintf("1.1.%d", i), Size: 8 << 20}))
		closed := time.Now()
		if err := os.Rename(filepath.Join(w.folder, "kubelet.new"),
			filepath.Join(w.folder, "kubelet.exe")); err != nil {
			t.Fatal(err)
		}
		pushed := moment(t, run.stderr.await(t, `.*"event":"pushed".*"component":"kubelet".*`, i+2)[i+1])
		healthy := moment(t, run.stderr.await(t, `.*"event":"healthy".*"component":"kubelet".*`, i+2)[i+1])
		all, s := healthy.Time.Sub(closed).Seconds(), pushed.Seconds
		t.Logf("file closed to healthy %.3f s, of which sent %.3f, down %.3f, healthy %.3f: overhead %.3f s; "+
			"reported %.3f s later",
			all, s["transfer"], s["down"], s["healthy"], all-s["transfer"]-s["down"]-s["healthy"],
			pushed.Time.Sub(healthy.Time).Seconds())
	}
	for line := range strings.Lines(strings.TrimSpace(run.stdout.String())) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no line of JSON: %s", line)
		}
	}
}

// event is a line of --log-format json.
type event struct {
	Time    time.Time
	Seconds map[string]float64
}

func moment(t *testing.T, line string) (e event) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestWatchUsage(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	for _, args := range [][]string{
		{"push", "--watch", "--dry-run"}, {"push", "--watch", "-o", "svg"}, {"push", "--build"},
	} {
		story := &lines{}
		if code, _ := w.swdt(t.Context(), story, args...); code != 2 {
			t.Errorf("%v: exit code %d: %s", args, code, story)
		}
	}
}
