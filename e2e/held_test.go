//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/ui"
)

// scannerExe is a program that holds a file as virus scanners do.
const scannerExe = `C:\scanner.exe`

// holdFiles pushes while a real program of the node holds kubelet's binary for 20 seconds: first the old one in the
// middle of a push, then the new one in the middle of an undo.
func (n *victim) holdFiles(t *testing.T) {
	ok(t, "cp", "-c", n.configs[0], windowsProgram(t, "scanner"), "node:"+scannerExe)
	t.Run("push", func(t *testing.T) {
		ended := n.pushHeld(t, "prepared", n.configs[1-n.current])
		n.current = 1 - n.current
		outcome := decoded[pushed](t, ended)
		switch kubelet := outcome.Nodes[0].Components[1]; {
		case ended.code != 0:
			t.Errorf("the push ended with %d", ended.code)
		case kubelet.Seconds.Down > 15:
			t.Errorf("kubelet was down for %v s: it was stopped while its file was held", kubelet.Seconds.Down)
		case !strings.Contains(kubelet.Message, "scanner.exe (PID ") || !strings.Contains(kubelet.Message, "before the stop"):
			t.Errorf("the message is %q, want the holder and the time", kubelet.Message)
		}
		n.checkFiles(t, "after the push")
		n.checkServices(t)
		n.checkLeftovers(t)
	})
	t.Run("undo", func(t *testing.T) {
		ended := n.pushHeld(t, "rollingBack", n.broken)
		if ended.code == 0 {
			t.Error("the push of a kubelet that crashes succeeded")
		}
		if !strings.Contains(ended.stderr, "is held by scanner.exe (PID ") {
			t.Errorf("no line names the holder: %s", ended.stderr)
		}
		n.checkFiles(t, "after the undo")
		n.checkServices(t)
		n.checkLeftovers(t)
	})
}

type pushed struct {
	Nodes []struct {
		Components []struct {
			Name, Message string
			Seconds       struct{ Down float64 }
		}
	}
}

// pushHeld lets a push stay in a state until a scanner has opened kubelet's binary.
func (n *victim) pushHeld(t *testing.T, state, config string) result {
	t.Helper()
	release := n.hold(t, state)
	p := n.begin(config)
	defer p.cancel()
	if _, ok := n.awaitStruck(t, p, state); !ok {
		t.Fatalf("no transaction came to the state %s", state)
	}
	stop := n.scan(t, kubeletExe)
	defer stop()
	release()
	ended := <-p.ended
	t.Logf("the push whose file was held: %s", ended)
	return ended
}

// scan starts a scanner on the node that holds a file for 20 seconds, and returns when it has opened it.
func (n *victim) scan(t *testing.T, path string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	lines, ended := &firstLine{seen: make(chan struct{})}, make(chan struct{})
	go func() {
		defer close(ended)
		cli.Run(ctx, ui.Streams{In: strings.NewReader(""), Out: lines, Err: lines},
			[]string{"exec", "-c", n.configs[0], "--", scannerExe, "20", path},
			cli.Environment{Agent: func() (agentbin.Agent, error) { return n.agent, nil }})
	}()
	select {
	case <-lines.seen:
	case <-ended:
		t.Fatalf("the scanner ended: %s", lines.text.String())
	case <-time.After(commandLimit):
		t.Fatal("the scanner does not start")
	}
	return func() { cancel(); <-ended }
}

// firstLine is a writer that closes seen when a line has come. One goroutine writes.
type firstLine struct {
	text bytes.Buffer
	seen chan struct{}
	done bool
}

func (f *firstLine) Write(p []byte) (int, error) {
	f.text.Write(p)
	if !f.done && bytes.Contains(f.text.Bytes(), []byte("scanning")) {
		f.done = true
		close(f.seen)
	}
	return len(p), nil
}
