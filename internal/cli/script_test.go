package cli_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster/kindtest"
	"github.com/swdt-dev/swdt/internal/inspect/hns/hnstest"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/testing/registrytest"
	"github.com/swdt-dev/swdt/internal/testing/suitetest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
	"github.com/swdt-dev/swdt/internal/wait"
)

// TestMain makes this test binary behave as swdt when it runs under that name,
// also as the background process of a sandbox. Most of the tests wait for processes and
// clocks, so more of them run side by side than there are processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){
		"swdt":         swdt,
		"kubectl-swdt": swdt,
	})
}

func swdt() {
	ctx, stop := cli.Interruptible(context.Background(), os.Stderr, os.Exit)
	defer stop()
	streams := ui.Streams{In: os.Stdin, Out: os.Stdout, Err: mortal{os.Stderr, os.Getenv(killAt)}}
	if os.Getenv(interruptPrinted) != "" {
		interrupted, interrupt := context.WithCancelCause(ctx)
		ctx, streams.Out = interrupted, &printing{Writer: os.Stdout, interrupt: interrupt}
	}
	env := cli.Environment{Program: os.Args[0], Agent: agent, Drivers: drivers, Kind: openKind,
		Version: "v0.0.0-test", Commit: "0123abc"}
	os.Exit(cli.Run(ctx, streams, os.Args[1:], env))
}

// interruptPrinted is the environment variable that makes a swdt without an end be interrupted, see printing.
const interruptPrinted = "SWDT_TEST_INTERRUPT"

// printing is the output of a swdt that is interrupted once it has printed a JSON document.
type printing struct {
	io.Writer
	printed   bytes.Buffer
	interrupt context.CancelCauseFunc
}

func (p *printing) Write(text []byte) (int, error) {
	n, err := p.Writer.Write(text)
	p.printed.Write(text)
	var document json.RawMessage
	if json.NewDecoder(bytes.NewReader(p.printed.Bytes())).Decode(&document) == nil {
		p.interrupt(&cli.InterruptedError{Signal: "test"})
	}
	return n, err
}

// agent stands for the embedded one: its hash makes the simulated Windows run the
// agent's code.
func agent() (agentbin.Agent, error) {
	if os.Getenv("SWDT_TEST_NO_AGENT") != "" {
		return agentbin.Agent{}, agentbin.ErrNotEmbedded
	}
	executable := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent", Version: "test"})
	sum := sha256.Sum256(executable)
	return agentbin.Agent{
		Hash: hex.EncodeToString(sum[:]), Size: int64(len(executable)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(executable)), nil },
	}, nil
}

// drivers returns a driver of VMs in which nothing runs. SWDT_TEST_VM_FAULT names the
// operation at which it fails, SWDT_TEST_VM_SLOW the one that writes the file slow-operation and
// takes longer than a process usually has after Ctrl-C, SWDT_TEST_VM_FINDING what your machine
// lacks, SWDT_TEST_VM_INSTALL how installations end.
func drivers() []vm.Driver {
	driver := &simulatedvm.Driver{Fault: func(operation string, _ vm.Machine) error {
		if os.Getenv("SWDT_TEST_VM_SLOW") == operation {
			if err := os.WriteFile("slow-operation", nil, 0o600); err != nil {
				return err
			}
			<-time.After(slowOperation)
		}
		if os.Getenv("SWDT_TEST_VM_FAULT") == operation {
			return errors.New("the simulated VM fails as it was asked to")
		}
		return nil
	}}
	if what := os.Getenv("SWDT_TEST_VM_FINDING"); what != "" {
		p := finding.Problem{Check: "memory", Where: finding.OnMachine}
		p.Severity, p.What, p.Remedy = finding.Error, what, "buy more"
		driver.Findings = append(driver.Findings, p)
	}
	switch os.Getenv("SWDT_TEST_VM_INSTALL") {
	case "fails":
		driver.Frames = []simulatedvm.Frame{{Serial: "SWDT stage=openssh error no internet\r\n"}}
	case "hangs":
		driver.Frames = []simulatedvm.Frame{{}}
	case "slow":
		driver.Slow = true
	}
	if os.Getenv(greetVM) != "" {
		return []vm.Driver{&greeting{Driver: driver}}
	}
	return []vm.Driver{driver}
}

// slowOperation is how long a slow operation of a simulated VM takes.
const slowOperation = 1500 * time.Millisecond

// appears PATTERN waits for a file.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears PATTERN")
	}
	ts.Check(wait.Condition{
		Name: "a file " + args[0], Interval: 10 * time.Millisecond, Limit: 30 * time.Second,
		Look: func(context.Context) error {
			found, err := filepath.Glob(ts.MkAbs(args[0]))
			if err == nil && len(found) == 0 {
				err = os.ErrNotExist
			}
			return err
		},
	}.Wait(context.Background()))
}

// openKind returns simulated clusters in the folder SWDT_TEST_KIND, and SWDT_TEST_KUBECONFIG
// as the access to each.
func openKind(context.Context, string, log.Logger) (kindcluster.Kind, error) {
	folder := os.Getenv("SWDT_TEST_KIND")
	if folder == "" {
		return nil, &kindcluster.NoRuntimeError{}
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	return &kindtest.Kind{Folder: folder, Kubeconfig: os.Getenv("SWDT_TEST_KUBECONFIG")}, nil
}

// windowsISO makes an ISO like Windows Server 2022's: windows-iso FILE.
func windowsISO(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		content, err := os.ReadFile(mediatest.WindowsISO(t))
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[0]), content, 0o600))
	}
}

// specs builds the stand-in for Kubernetes' e2e.test: specs FILE.
func specs(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		ts.Check(os.Rename(suitetest.BuildIn(t, ts.MkAbs(".")), ts.MkAbs(args[0])))
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	served := &registries{t: t}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("USERPROFILE", home)
			state := filepath.Join(env.WorkDir, "state")
			env.Setenv("XDG_STATE_HOME", state)
			env.Defer(func() { endSandboxes(t, filepath.Join(state, "swdt", "sandbox")) })
			// The race detector would let each process sleep for a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			// A process of a script ends before it needs a collection of garbage, which takes a quarter of its time.
			env.Setenv("GOGC", "400")
			env.Setenv("XDG_DATA_HOME", filepath.Join(env.WorkDir, "data"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("SSH_AUTH_SOCK", "")
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "binary": binary, "longscript": longScript, "append": appendFile,
			"calico": calicoNetwork, "matches": matches, "wider": wider, "appears": appears,
			"windows-iso": windowsISO(t), "keep": keep, "specs": specs(t), "registry": served.start,
			"sent": served.sent, "index": served.index, "refuses": served.refuses, "ssh-host": sshHost,
		},
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// endSandboxes ends the sandboxes that a failed script has left.
func endSandboxes(t *testing.T, stateDir string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list, err := sandbox.Status(ctx, sandbox.Options{StateDir: stateDir})
	if err != nil {
		t.Error(err)
	}
	for _, info := range list {
		if err := sandbox.Down(ctx, sandbox.Options{Name: info.Name, StateDir: stateDir}); err != nil {
			t.Error(err)
		}
	}
}

// exits CODE ARG… runs swdt and requires that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exits CODE ARG…")
	}
	err := ts.Exec("swdt", args[1:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("swdt %s: exit code %s, want %s", strings.Join(args[1:], " "), code, args[0])
	}
}

// keep NAME ARG… runs swdt, and sets an environment variable to what it prints.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: keep NAME ARG…")
	}
	ts.Check(ts.Exec("swdt", args[1:]...))
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// binary FILE NAME VERSION [FAULT [SIZE]] writes a small Windows executable that the
// simulated Windows can run, or one of SIZE bytes.
func binary(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: binary FILE NAME VERSION [FAULT [SIZE]]")
	}
	spec := simulated.BinarySpec{Name: args[1], Version: args[2]}
	if len(args) > 3 {
		spec.Fault = simulated.Fault(args[3])
	}
	if len(args) > 4 {
		size, err := strconv.Atoi(args[4])
		ts.Check(err)
		spec.Size = size
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), simulated.Binary(spec), 0o755))
}

// registries are the OCI registries of scripts, by host and port.
type registries struct {
	t   *testing.T
	all sync.Map
}

// start is the command registry VARIABLE, which starts a registry that keeps its blobs on disk, and sets the
// variable to its host and port. registry VARIABLE USER PASSWORD starts one that demands this login.
func (r *registries) start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 && len(args) != 3 {
		ts.Fatalf("usage: registry VARIABLE [USER PASSWORD]")
	}
	folder := ts.MkAbs("registry-" + args[0])
	ts.Check(os.Mkdir(folder, 0o700))
	started := registrytest.StartOnDisk(r.t, folder)
	ts.Setenv(args[0], started.Host)
	if len(args) == 3 {
		started.RequireLogin(args[1], args[2])
	}
	r.all.Store(started.Host, started)
}

// sent is the command sent HOST LEAST MOST, which requires that a registry has sent so many bytes since the last
// such command.
func (r *registries) sent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: sent HOST LEAST MOST")
	}
	found, there := r.all.Load(args[0])
	if !there {
		ts.Fatalf("there is no registry %s", args[0])
	}
	least, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	most, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	if sent := found.(*registrytest.Registry).Sent(); sent < least || sent > most {
		ts.Fatalf("the registry has sent %d bytes, want %d to %d", sent, least, most)
	}
}

// index is the command index HOST REPOSITORY TAG FILE, which stores an image in a registry, with the manifests of a file
// (registrytest.Manifest).
func (r *registries) index(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: index HOST REPOSITORY TAG FILE")
	}
	found, there := r.all.Load(args[0])
	if !there {
		ts.Fatalf("there is no registry %s", args[0])
	}
	var manifests []registrytest.Manifest
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[3])), &manifests))
	found.(*registrytest.Registry).PutIndex(r.t, args[1], args[2], manifests)
}

// refuses is the command refuses HOST METHOD STATUS, which makes a registry answer requests of the method with
// the status.
func (r *registries) refuses(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: refuses HOST METHOD STATUS")
	}
	found, there := r.all.Load(args[0])
	if !there {
		ts.Fatalf("there is no registry %s", args[0])
	}
	status, err := strconv.Atoi(args[2])
	ts.Check(err)
	found.(*registrytest.Registry).Intercept(func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
		if request.Method == args[1] {
			w.WriteHeader(status)
		}
		return request.Method == args[1]
	})
}

// longscript FILE writes a script that is too long for a command line.
func longScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: longscript FILE")
	}
	script := strings.Repeat("# nothing\n", 10_000) + "Write-Output one\nexit 3\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(script), 0o644))
}

// append FILE OTHER… joins node files. If another file begins with a section of spec that
// the file has already, the section replaces the earlier one.
func appendFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: append FILE OTHER…")
	}
	all := ts.ReadFile(args[0])
	for _, other := range args[1:] {
		text := ts.ReadFile(other)
		if section, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(section, "  ") &&
			strings.HasSuffix(section, ":") {
			all = withoutSection(all, section)
		}
		all += text
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(all), 0o600))
}

// withoutSection removes a line and the more deeply indented lines below it.
func withoutSection(text, section string) string {
	var kept strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		switch {
		case strings.TrimRight(line, "\r\n") == section:
			inside = true
		case inside && !strings.HasPrefix(line, "   ") && strings.TrimSpace(line) != "":
			inside = false
		}
		if !inside {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// calico FOLDER writes the network of a Calico node to the folder from which the node
// takes the answers of HNS.
func calicoNetwork(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: calico FOLDER")
	}
	ts.Check(hnstest.Calico().WriteTo(ts.MkAbs(args[0])))
}
