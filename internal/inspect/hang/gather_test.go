package hang_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/hang"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
)

// endless is a stream of goroutines that does not end.
type endless struct{ closed bool }

func (e *endless) Read(p []byte) (int, error) {
	const one = "goroutine 1 [select, 9 minutes]:\na.b()\n\n"
	return copy(p, one), nil
}

func (e *endless) Close() error {
	e.closed = true
	return nil
}

func options() hang.Options {
	return hang.Options{Pipe: simulated.ContainerdPipe, MetricsURL: kubeproxy.DefaultMetricsURL}
}

// Many dumps in a row leave neither files nor processes.
func TestDumpsLeaveNothing(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	before := n.Machine.ProcessNames()
	for range 8 {
		dump, err := hang.Gather(t.Context(), n.Node, options())
		if err != nil {
			t.Fatal(err)
		}
		if dump.Verdict != "nothing waits" || len(dump.Probes) != 4 {
			t.Fatalf("%s: %+v", dump.Verdict, dump.Probes)
		}
		for _, p := range dump.Processes {
			if (p.Kind == hang.Containerd || p.Kind == hang.Shim) && (p.Error != "" || p.Goroutines == 0 || p.Silent) {
				t.Errorf("%s: %s, %d goroutines", p.Kind, p.Error, p.Goroutines)
			}
		}
	}
	if after := n.Machine.ProcessNames(); strings.Join(before, " ") != strings.Join(after, " ") {
		t.Errorf("the processes were %q, and are %q", before, after)
	}
	list, err := n.Node.Files.List(t.Context(), &agentv1.ListFilesRequest{Path: `C:\Windows\Temp`})
	if err != nil || len(list.GetEntries()) > 0 {
		t.Errorf("left is %v, %v", list.GetEntries(), err)
	}
}

// The log names the pods of calls that do not return, and kubelet's endless answer is cut.
func TestCallsOfTheLogAndAnEndlessKubelet(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	began := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano)
	n.Put(`C:\var\log\containerd\containerd.log`, []byte(`time="`+began+
		`" level=info msg="RunPodSandbox for &PodSandboxMetadata{Name:web,Uid:1,Namespace:shop,Attempt:0,}"`+"\n"))
	body := &endless{}
	o := options()
	o.Kubelet = func(context.Context) (io.ReadCloser, error) { return body, nil }
	dump, err := hang.Gather(t.Context(), n.Node, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(dump.Calls) != 1 || dump.Calls[0].Pod != "shop/web" || dump.Calls[0].Seconds < 3500 ||
		!strings.HasPrefix(dump.Verdict, "RunPodSandbox has not returned for ") {
		t.Errorf("%s: %+v; %q", dump.Verdict, dump.Calls, dump.Problems)
	}
	for _, p := range dump.Processes {
		if p.Kind == hang.Kubelet && (!p.Cut || p.Goroutines == 0 || !body.closed) {
			t.Errorf("kubelet: %d goroutines, cut is %t, closed is %t: %s", p.Goroutines, p.Cut, body.closed, p.Error)
		}
	}
}

// A service that answers with an error answers; a dump of a node that is gone is an error.
func TestErrorsOfTheNode(t *testing.T) {
	n := nodetest.Start(t, "win-1", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	broken := errors.New("HCS is broken")
	n.OnCall(func(method string) error {
		if strings.HasSuffix(method, "Compute/Objects") {
			return broken
		}
		return nil
	})
	dump, err := hang.Gather(t.Context(), n.Node, options())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range dump.Probes {
		if p.Name == "HCS" && (!p.Answers || !strings.Contains(p.Error, broken.Error())) {
			t.Errorf("%+v", p)
		}
	}
	n.OnCall(func(string) error { return broken })
	if _, err := hang.Gather(t.Context(), n.Node, options()); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// A program that does not answer until the deadline does not take the rest of the dump with it.
func TestADeadlineKeepsWhatWasGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := nodetest.Start(t, "win-1", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
		held := make(chan struct{})
		t.Cleanup(func() { close(held) })
		n.Machine.Interleave(func(o simulated.Operation) {
			if o.Process == "containerd.exe" {
				<-held
			}
		})
		for _, limit := range []time.Duration{time.Second, 10 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			dump, err := hang.Gather(ctx, n.Node, options())
			late := ctx.Err()
			cancel()
			if err != nil || late != nil {
				t.Fatalf("%s: %v, %v", limit, err, late)
			}
			time.Sleep(time.Minute) // of the test's own clock: another dump is not under way
			if len(dump.Probes) != 4 || len(dump.Unread) != 1 || !strings.HasPrefix(dump.Verdict, "nothing waits in what was read") {
				t.Errorf("%s: %s: %+v", limit, dump.Verdict, dump.Probes)
			}
			for _, p := range dump.Processes {
				if p.Silent {
					t.Errorf("%s: %s/%d is silent: %s", limit, p.Kind, p.PID, p.Error)
				}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := hang.Gather(ctx, n.Node, options()); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancel: %v", err)
		}
	})
}
