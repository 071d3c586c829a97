//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/testing/gobuild"
	"github.com/swdt-dev/swdt/internal/wire/cri"
	"github.com/swdt-dev/swdt/internal/wire/cri/measure"
)

// TestCRIOfRealContainerd checks that clients without any support for SSH or Windows work with the
// real containerd 1.7.12 on its named pipe.
func TestCRIOfRealContainerd(t *testing.T) {
	p := proxyRealContainerd(t)
	t.Run("a client of others", func(t *testing.T) { grpcurl(t, p) })
	t.Run("median of a call", func(t *testing.T) { compareMedians(t, p) })
	t.Run("fifty clients", func(t *testing.T) { fiftyClients(t, p) })
	t.Run("containerd is killed", func(t *testing.T) { killContainerd(t, p) })
}

// criProxy is a running `swdt cri proxy`.
type criProxy struct {
	config   string // node file
	endpoint string
	pid      int
}

func proxyRealContainerd(t *testing.T) criProxy {
	t.Helper()
	config := nodeFile(t, credentialsOf(t, wineSandbox(t)), containerdProvisioner(t, "1.7.12"))
	ok(t, "push", "-c", config, "--accept-new-host-key")
	ok(t, "exec", "-c", config, "--", containerdExe, "--register-service", "--log-file", `C:\containerd.log`)
	ok(t, "exec", "-c", config, "--", "net", "start", "containerd")
	ok(t, "cp", "-c", config, windowsProgram(t, "crinode"), `node:C:\crinode.exe`)
	return startProxy(t, config)
}

// startProxy starts `swdt cri proxy`, which runs until the test ends. The flags may choose the way to the node.
func startProxy(t *testing.T, config string, flags ...string) criProxy {
	t.Helper()
	cmd := exec.Command(environment(t, "SWDT_BIN"),
		append([]string{"cri", "proxy", "-c", config, "-o", "json"}, flags...)...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("the proxy ended with %d\n%s", code, stderr.String())
		}
	})
	var result struct {
		Nodes []struct{ Name, Endpoint string }
	}
	if err := json.NewDecoder(bufio.NewReader(stdout)).Decode(&result); err != nil || len(result.Nodes) != 1 {
		t.Fatalf("the proxy's result: %v, %v\n%s", result, err, stderr.String())
	}
	return criProxy{config, result.Nodes[0].Endpoint, cmd.Process.Pid}
}

// windowsProgram builds a program of this package's folder for the node, and returns its path.
func windowsProgram(t testing.TB, name string) string {
	t.Helper()
	return gobuild.Build(t, gobuild.Program{Package: "./" + name, Windows: true})
}

func (p criProxy) connect(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(p.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// grpcurl calls the runtime with the published grpcurl, a client that is independent of swdt.
func grpcurl(t *testing.T, p criProxy) {
	module := strings.TrimSpace(run(t, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/cri-api"))
	call := func(method string) string {
		return run(t, lab(t, "linux/grpcurl"), "-plaintext", "-import-path",
			filepath.Join(module, "pkg/apis/runtime/v1"),
			"-proto", "api.proto", p.endpoint, "runtime.v1.RuntimeService/"+method)
	}
	if got := call("Version"); !strings.Contains(got, `"runtimeVersion": "1.7.12"`) {
		t.Errorf("Version: %s", got)
	}
	if got := call("Status"); !strings.Contains(got, "RuntimeReady") {
		t.Errorf("Status: %s", got)
	}
	if got := strings.TrimSpace(call("ListContainerStats")); got != "{}" {
		t.Errorf("ListContainerStats without containers: %s", got)
	}
}

// compareMedians logs the cost of the relay. It does not fail, since the times depend on
// the machine's load.
func compareMedians(t *testing.T, p criProxy) {
	took, err := measure.Median(t.Context(), p.connect(t), cri.MethodVersion, 1000)
	if err != nil {
		t.Fatal(err)
	}
	onNode := strings.TrimSpace(ok(t, "exec", "-c", p.config, "--", `C:\crinode.exe`, "median").stdout)
	t.Logf("median of a Version call: %s µs on the node, %d µs through the proxy", onNode, took.Microseconds())
}

// held has the numbers of threads and handles of the node's agents, and of the proxy's open files.
type held struct {
	agents map[string][2]int // by PID: threads, handles
	files  int               // open in the proxy
}

func (p criProxy) held(t *testing.T) held {
	t.Helper()
	h := held{agents: map[string][2]int{}}
	for line := range strings.Lines(ok(t, "exec", "-c", p.config, "--", `C:\crinode.exe`, "agents").stdout) {
		fields := strings.Fields(line)
		threads, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		handles, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		h.agents[fields[0]] = [2]int{threads, handles}
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	h.files = len(files)
	return h
}

// fiftyClients makes ten thousand calls, and then so many connections that one leaked handle for
// each connection would be visible. Wine reports the number of places in a process's table of
// handles, and doubles the table when the table is full.
func fiftyClients(t *testing.T, p criProxy) {
	p.burst(t, 50, 200) // also makes the agents start their threads and fill their pools
	before := p.held(t)
	places := 0
	for _, b := range before.agents {
		places = max(places, b[1])
	}
	for range places/50 + 1 {
		p.burst(t, 50, 4)
	}
	var after held
	eventually(t, "the proxy closes what clients have closed", func() error {
		if after = p.held(t); after.files > before.files {
			return fmt.Errorf("%d open files, %d before", after.files, before.files)
		}
		return nil
	})
	compared := 0
	for pid, b := range before.agents {
		a, there := after.agents[pid]
		if !there {
			continue // the agent of the command that counted before
		}
		compared++
		t.Logf("agent %s: %d → %d threads, %d → %d places for handles", pid, b[0], a[0], b[1], a[1])
		if a[1] > b[1] {
			t.Errorf("agent %s holds more than before", pid)
		}
	}
	if compared != 2 { // the agent of the connection, and the agent of the pipes
		t.Errorf("compared %d agents: %v and %v", compared, before.agents, after.agents)
	}
	t.Logf("proxy: %d → %d open files", before.files, after.files)
}

func (p criProxy) burst(t *testing.T, clients, calls int) {
	t.Helper()
	begun := time.Now()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			conn := p.connect(t)
			defer conn.Close()
			c := runtimev1.NewRuntimeServiceClient(conn)
			for range calls {
				if _, err := c.Version(t.Context(), &runtimev1.VersionRequest{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d clients, %d calls in %s", clients, clients*calls, time.Since(begun).Round(time.Millisecond))
}

// killContainerd kills containerd while a stream of its events is open.
func killContainerd(t *testing.T, p criProxy) {
	conn := p.connect(t)
	events := subscribe(t, conn)
	ok(t, "exec", "-c", p.config, "--", "taskkill", "/F", "/IM", "containerd.exe")
	var err error
	for err == nil { // skip the events that were on their way
		var event []byte
		err = events.RecvMsg(&event)
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the stream that was open: %v", err)
	}
	c := runtimev1.NewRuntimeServiceClient(conn)
	if _, err := c.Version(t.Context(), &runtimev1.VersionRequest{}); status.Code(err) != codes.Unavailable ||
		!strings.Contains(status.Convert(err).Message(), "is containerd running?") {
		t.Errorf("without containerd: %v", err)
	}
	eventually(t, "containerd starts again", func() error {
		if r := swdt(t, "exec", "-c", p.config, "--", "net", "start", "containerd"); r.code != 0 {
			return errors.New(r.stderr)
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	eventually(t, "calls work again", func() error {
		_, err := c.Version(ctx, &runtimev1.VersionRequest{}, grpc.WaitForReady(true))
		return err
	})
}

// subscribe opens containerd's own stream of events and waits for the first event.
func subscribe(t *testing.T, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	raw := grpc.ForceCodec(cri.RawCodec{})
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true},
		"/containerd.services.events.v1.Events/Subscribe", raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.SendMsg([]byte{}), stream.CloseSend()); err != nil {
		t.Fatal(err)
	}
	var event []byte
	received := make(chan error, 1)
	go func() { received <- stream.RecvMsg(&event) }()
	namespaces := 0
	// containerd does not report events from before the subscription.
	eventually(t, "containerd tells of a new namespace", func() error {
		namespaces++
		name := fmt.Appendf(nil, "swdt-e2e-%d", namespaces)
		var created []byte // CreateNamespaceRequest{namespace{name}}
		if err := conn.Invoke(ctx, "/containerd.services.namespaces.v1.Namespaces/Create", message(1, message(1, name)),
			&created, raw); err != nil {
			t.Fatal(err)
		}
		select {
		case err = <-received:
			return nil
		default:
			return errors.New("no event yet")
		}
	})
	if err != nil || !bytes.Contains(event, []byte("/namespaces/create")) {
		t.Fatalf("event %q, %v", event, err)
	}
	return stream
}

// message returns a protobuf message with one field.
func message(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}
