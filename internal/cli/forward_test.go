package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/swdt-dev/swdt/internal/node/portforward"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// echoServer listens at a port of 127.0.0.1, which is that of the simulated node, too. It returns each client's bytes
// after the client has ended its direction.
func echoServer(t *testing.T) (port int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				text, _ := io.ReadAll(conn)
				_, _ = conn.Write(text)
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

func forwardFitsItsSchema(t *testing.T) {
	w := newWorkplace(t)
	run := w.background("forward", fmt.Sprintf(":%d", echoServer(t)), ":1", "-o", "json")
	run.stdout.await(t, `^}`, 1)
	var report portforward.Report
	if err := json.Unmarshal([]byte(run.stdout.String()), &report); err != nil {
		t.Fatal(err)
	}
	fits(t, "forward.json", run.stdout.String())
	for range 2 {
		conn, err := net.Dial("tcp", report.Nodes[0].Ports[0].Local)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "hello")
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); string(got) != "hello" || err != nil {
			t.Errorf("the node answers %q, %v", got, err)
		}
		conn.Close()
	}
	// A port at which nothing listens: a warning, and the others go on.
	conn, err := net.Dial("tcp", report.Nodes[0].Ports[1].Local)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.ReadAll(conn)
	run.stderr.await(t, `connect to port 1 of the node: `, 1)
}

// attachFitsItsSchema attaches Delve to a service. The run ends with the test, as by Ctrl-C.
func attachFitsItsSchema(t *testing.T) {
	w := newWorkplace(t)
	w.write("dlv.exe", simulated.Binary(simulated.BinarySpec{Name: "dlv", Version: "1.27.2"}))
	run := w.background("attach", "kubelet", "--dlv", filepath.Join(w.folder, "dlv.exe"), "-o", "json")
	run.stdout.await(t, `^}`, 1)
	fits(t, "attach.json", run.stdout.String())
}

// forwardReportFits compares the report of a forward with a schema.
func forwardReportFits(file string) func(*testing.T) {
	return func(t *testing.T) {
		text, err := json.Marshal(portforward.NewReport("win", nil))
		if err != nil {
			t.Fatal(err)
		}
		fits(t, file, string(text))
	}
}

func fits(t *testing.T, file, text string) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(schemas, file))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := documentsThatFit(schema, text); err != nil || n != 1 {
		t.Errorf("%d documents: %v:\n%s", n, err, text)
	}
}

// A port that another program uses here is named, with the way to choose another one.
func TestForwardFromABusyPort(t *testing.T) {
	w := newWorkplace(t)
	port := echoServer(t)
	story := &lines{}
	code, _ := w.swdt(t.Context(), story, "forward", fmt.Sprintf("%d", port))
	want := regexp.MustCompile(fmt.Sprintf(`listen tcp 127.0.0.1:%d: .*; write LOCAL:%[1]d for another port of this machine, or :%[1]d for a free one`, port))
	if code != 1 || !want.MatchString(story.String()) || strings.Contains(story.String(), "connecting") {
		t.Errorf("exit code %d: %s", code, story)
	}
	story = &lines{}
	code, _ = w.swdt(t.Context(), story, "rdp", fmt.Sprintf("%d", port))
	want = regexp.MustCompile(`(?m)^swdt: listen tcp .*; name another port of this machine, or none for a free one$`)
	if code != 1 || !want.MatchString(story.String()) {
		t.Errorf("rdp: exit code %d: %s", code, story)
	}
}
