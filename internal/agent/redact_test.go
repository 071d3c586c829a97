package agent_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/cri"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// redacted returns a context for calls whose replies must be redacted before
// they leave the node.
func redacted(ctx context.Context, patterns ...string) context.Context {
	ctx = metadata.AppendToOutgoingContext(ctx, redact.Metadata, "1")
	for _, p := range patterns {
		ctx = metadata.AppendToOutgoingContext(ctx, redact.MetadataPatterns, p)
	}
	return ctx
}

const planted = "hunter2hunter2"

func clean(t *testing.T, what, got string) {
	t.Helper()
	if strings.Contains(got, planted) || !strings.Contains(got, redact.Mark) {
		t.Errorf("%s came as %q", what, got)
	}
}

// The agent redacts a reply before it is sent, if the caller requests it: the
// test reads the agent's replies themselves.
func TestAnswersLeaveTheNodeRedacted(t *testing.T) {
	n := nodetest.Start(t, "win", simulated.Options{})
	ctx := redacted(t.Context(), "blue-*")
	n.Put(`C:\k\a.yaml`, []byte("first\npassword: "+planted+"\nlast blue-"+planted+" line without an end"))

	read := func(ctx context.Context, offset int64) (all string, err error) {
		stream, err := n.Node.Files.Read(ctx, &agentv1.ReadRequest{Path: `C:\k\a.yaml`, Offset: offset})
		for err == nil {
			var reply *agentv1.ReadReply
			if reply, err = stream.Recv(); err == nil {
				all += string(reply.GetData())
			}
		}
		return all, err
	}
	if all, err := read(t.Context(), 0); !errors.Is(err, io.EOF) || !strings.Contains(all, planted) {
		t.Fatalf("not redacted it is %q, %v", all, err)
	}
	all, err := read(ctx, 0)
	if !errors.Is(err, io.EOF) || all != "first\npassword: REDACTED\nlast REDACTED line without an end" {
		t.Errorf("a file came as %q, %v", all, err)
	}
	switch all, err := read(ctx, 20); {
	case !errors.Is(err, io.EOF):
		t.Errorf("the error is %v, want %v", err, io.EOF)
	case strings.Contains(all, "hunter"):
		t.Errorf("all contains %q:\n%s", "hunter", all)
	case !strings.HasPrefix(all, "last "):
		t.Errorf("all does not begin with %q:\n%s", "last ", all)
	}

	// Callers request a file by its name, so names are not redacted.
	n.Put(`C:\k\blue-1.yaml`, nil)
	list, err := n.Node.Files.List(ctx, &agentv1.ListFilesRequest{Path: `C:\k`})
	if err != nil || !slices.ContainsFunc(list.GetEntries(), func(e *agentv1.FileInfo) bool {
		return e.GetPath() == `C:\k\blue-1.yaml`
	}) {
		t.Errorf("%v, %v", list, err)
	}

	// A reply that is packed for transport was redacted before.
	n.Machine.WriteFile(`C:\k\long.yaml`, []byte(strings.Repeat("password: "+planted+"\n", 10_000)))
	long, err := n.Node.Files.Read(ctx, &agentv1.ReadRequest{Path: `C:\k\long.yaml`})
	all = ""
	for err == nil {
		var reply *agentv1.ReadReply
		if reply, err = long.Recv(); err == nil {
			all += string(reply.GetData())
		}
	}
	if all != strings.Repeat("password: REDACTED\n", 10_000) {
		t.Errorf("a long file came as %d bytes, %.100q, %v", len(all), all, err)
	}

	tail, err := n.Node.Files.Tail(ctx, &agentv1.TailRequest{Path: `C:\k\a.yaml`, Lines: -1})
	all = ""
	for err == nil {
		var reply *agentv1.TailReply
		if reply, err = tail.Recv(); err == nil {
			if reply.GetEvent() == agentv1.TailEvent_TAIL_EVENT_END && !strings.Contains(all, "without an end") {
				t.Errorf("the end is told after %q", all)
			}
			all += string(reply.GetData())
		}
	}
	clean(t, "a log", all)

	n.Machine.Script(func(c platform.Command) (simulated.Answer, bool) {
		return simulated.Answer{Stdout: "password=" + planted, Stderr: "token: " + planted}, c.Path == "leak"
	})
	run, err := n.Node.Processes.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Send(&agentv1.RunRequest{Command: &agentv1.RunCommand{Path: "leak"}, StdinClosed: true}); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, exited := "", "", false
	for !exited {
		reply, err := run.Recv()
		if err != nil {
			t.Fatal(err)
		}
		stdout, stderr, exited = stdout+string(reply.GetStdout()), stderr+string(reply.GetStderr()), reply.GetExited()
	}
	clean(t, "stdout", stdout)
	clean(t, "stderr", stderr)

	const key = `HKLM\SOFTWARE\X`
	if _, err := n.Node.Registry.Set(t.Context(),
		&agentv1.RegistrySetRequest{Key: key, Value: &agentv1.RegistryValue{Name: "DbPassword", Type: "REG_SZ",
			String_: planted}}); err != nil {
		t.Fatal(err)
	}
	value, err := n.Node.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: key, Name: "DbPassword"})
	switch {
	case err != nil:
		t.Fatal(err)
	case value.GetType() != "REG_SZ":
		t.Fatalf("value.GetType() is %q, want %q", value.GetType(), "REG_SZ")
	}
	clean(t, "a value of the registry", value.GetString_())

	_, err = n.Node.Files.Stat(ctx, &agentv1.StatRequest{Path: `C:\k\password=` + planted})
	if !errors.Is(err, fault.ErrNotExist) {
		t.Fatalf("the kind of an error is lost: %v", err)
	}
	clean(t, "an error", err.Error())
}

// The runtime's replies arrive through a pipe and are redacted too, and calls
// that would change something are refused.
func TestARedactedPipe(t *testing.T) {
	n := nodetest.Start(t, "win", simulated.Options{})
	ctx := redacted(t.Context())
	client, err := criclient.New(ctx, func(ctx context.Context) (net.Conn, error) {
		return n.DialPipe(ctx, cri.DefaultPipe)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answer, err := criclient.Version(t.Context(), client)
	switch {
	case err != nil:
		t.Fatal(err)
	case !strings.Contains(string(answer.JSON), "containerd"):
		t.Fatalf("answer.JSON lacks %q:\n%s", "containerd", string(answer.JSON))
	}
	if _, err := criclient.Pods(t.Context(), client); err != nil {
		t.Error(err)
	}
	_, err = client.Runtime.StopPodSandbox(t.Context(), &runtimev1.StopPodSandboxRequest{PodSandboxId: "x"})
	if err == nil || !strings.Contains(err.Error(), "may change the runtime") {
		t.Errorf("a pod was stopped: %v", err)
	}
	if _, err := n.DialPipe(ctx, `\\.\pipe\lsass`); !errors.Is(err, fault.ErrPermission) {
		t.Errorf("another pipe: %v", err)
	}
	if _, err := n.DialPipe(ctx, `\\.\pipe\cri-dockerd`); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("a pipe that no process serves: %v", err)
	}
}

func TestABadPatternIsRefused(t *testing.T) {
	n := nodetest.Start(t, "win", simulated.Options{})
	if _, err := n.Node.Machine.Facts(redacted(t.Context(), "*"), &agentv1.FactsRequest{}); status.Code(
		err) != codes.InvalidArgument {
		t.Errorf("status.Code(err) is %v, want %v", status.Code(
			err), codes.InvalidArgument)
	}
}
