package sandbox_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/carrier"
	"github.com/swdt-dev/swdt/internal/node/viapod/receiver"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/ui"
)

// cuttingKubelet cuts the first streams that carry the agent, each after a number of bytes.
type cuttingKubelet struct {
	apiserver.Kubelets
	mu   sync.Mutex
	cuts []int64
	mute bool // the receiver sees the end of its stdin, and its stream stays
}

func (k *cuttingKubelet) Exec(ctx context.Context, name string, command []string, stdin io.Reader, stdout,
	stderr io.Writer) (int, error) {
	if _, _, ok := receiver.Received(command); !ok {
		return k.Kubelets.Exec(ctx, name, command, stdin, stdout, stderr)
	}
	k.mu.Lock()
	cut := int64(-1)
	if len(k.cuts) > 0 {
		cut, k.cuts = k.cuts[0], k.cuts[1:]
	}
	k.mu.Unlock()
	switch {
	case cut < 0:
		return k.Kubelets.Exec(ctx, name, command, stdin, stdout, stderr)
	case k.mute:
		return k.Kubelets.Exec(ctx, name, command, io.LimitReader(stdin, cut), stdout, stderr)
	}
	_, _ = k.Kubelets.Exec(ctx, name, command, io.LimitReader(stdin, cut), io.Discard, io.Discard)
	return 0, apiserver.ErrCut
}

// warnings counts the warnings of a story.
type warnings struct {
	ui.Discard
	count *int
}

func (w warnings) Warn(string, ...any) { *w.count++ }

// The stream that carries the agent may break at any byte. swdt sends the agent again, says so, and leaves no part of
// it on the node.
func TestAnInstallationWhoseStreamBreaks(t *testing.T) {
	for name, test := range map[string]struct {
		cuts   []int64
		mute   bool
		warned int
		fails  bool
	}{
		"before the first byte":      {cuts: []int64{0}, warned: 1},
		"after one byte":             {cuts: []int64{1}, warned: 1},
		"after a frame":              {cuts: []int64{32 << 10}, warned: 1},
		"before the last byte":       {cuts: []int64{299_999}, warned: 1},
		"after the last byte":        {cuts: []int64{300_000}, warned: 1},
		"the input alone ends":       {cuts: []int64{0, 1000}, mute: true, warned: 2},
		"three times":                {cuts: []int64{1, 100_000, 0}, warned: 3},
		"as often as swdt sends it":  {cuts: []int64{1, 2, 3, 4}, warned: 3, fails: true},
		"the input, each time again": {cuts: []int64{1, 2, 3, 4}, mute: true, warned: 3, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newThrough(t)
			w.cluster.SetKubelets(&cuttingKubelet{Kubelets: sandbox.SimulatedKubelet(w.machine), cuts: test.cuts,
				mute: test.mute})
			warned := 0
			w.options.Reporter = warnings{count: &warned}
			n, err := node.Connect(t.Context(), w.doc, w.options)
			var unreachable *node.UnreachableError
			if test.fails != errors.As(err, &unreachable) || !test.fails && err != nil {
				t.Fatal(err)
			}
			if warned != test.warned {
				t.Errorf("%d warnings, want %d", warned, test.warned)
			}
			if err == nil {
				if got := hostname(t, n); got != "win-1" {
					t.Errorf("hostname %q", got)
				}
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			}
			w.nothingIsStaged()
			if left := w.pods(); len(left) > 0 {
				t.Errorf("left the pods %v", left)
			}
		})
	}
}

// A node whose disk is full takes no agent, at whichever byte of it, or of its installation, that is found. swdt says so
// at once, with the file, and leaves none of it on the node.
func TestAFullDiskOfANodeBehindItsCluster(t *testing.T) {
	for name, test := range map[string]struct {
		free func(size int64) int64 // free space of the disk for an agent of that size, in bytes
		path string                 // begins the path of the file that did not fit
	}{
		"before the first byte": {func(int64) int64 { return 0 }, `C:\Windows\System32\config\systemprofile\swdt-agent-`},
		"in the middle":         {func(size int64) int64 { return size / 3 }, `C:\Windows\System32\config\systemprofile\swdt-agent-`},
		"before the last byte":  {func(size int64) int64 { return size - 1 }, `C:\Windows\System32\config\systemprofile\swdt-agent-`},
		"at the installation":   {func(size int64) int64 { return size }, `C:\ProgramData\swdt\agent\`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newThrough(t)
			warned := 0
			w.options.Reporter = warnings{count: &warned}
			w.machine.SetFreeBytes(test.free(w.options.Agent.Size))
			_, err := node.Connect(t.Context(), w.doc, w.options)
			full, ok := errors.AsType[*carrier.DiskFullError](err)
			switch {
			case !ok:
				t.Errorf("the error is %v", err)
			case !strings.HasPrefix(full.Path, test.path) || full.Size != w.options.Agent.Size:
				t.Errorf("the error is for %s (%d bytes)", full.Path, full.Size)
			}
			if warned != 0 {
				t.Errorf("%d warnings", warned)
			}
			w.nothingIsStaged()
			if left := w.pods(); len(left) > 0 {
				t.Errorf("left the pods %v", left)
			}
		})
	}
}
