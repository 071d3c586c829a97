package transfer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const destination = `C:\k\kubelet.exe.swdt-0123456789ab`

// content returns bytes that are half noise and half text, as those of programs are.
func content(size int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]byte, size)
	for i := range out {
		if i%64 < 32 {
			out[i] = byte(r.Uint32())
		}
	}
	return out
}

func local(t *testing.T, content []byte) transfer.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubelet.exe")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return transfer.File{Binary: source.Binary{
		Path: path, Size: info.Size(), SHA256: hex.EncodeToString(sum[:]), Modified: info.ModTime(),
	}}
}

func start(t *testing.T) *nodetest.Node {
	return nodetest.Start(t, "w1", simulated.Options{Preset: simulated.Minimal})
}

// counting is a Reporter that counts a transfer's bytes.
type counting struct {
	ui.Discard
	mutex sync.Mutex
	total int64
	done  int64
	ended int
	each  func(done int64)
}

func (c *counting) Transfer(_ string, total int64) ui.Progress { c.total = total; return c }
func (c *counting) End()                                       { c.ended++ }
func (c *counting) Add(n int64) {
	c.mutex.Lock()
	c.done += n
	done := c.done
	c.mutex.Unlock()
	if c.each != nil {
		c.each(done)
	}
}

func TestSendSizes(t *testing.T) {
	n := start(t)
	for _, size := range []int{0, 1, 512 << 10, 512<<10 + 1, 4<<20 - 1, 4 << 20, 9<<20 + 17} {
		want, r := content(size, 1), &counting{}
		file := local(t, want)
		result, err := transfer.Send(t.Context(), n.Node, file, destination, r)
		switch {
		case err != nil:
			t.Fatal(err)
		case result.Method != transfer.MethodWhole:
			t.Fatalf("result.Method is %v, want %v", result.Method, transfer.MethodWhole)
		case result.SizeBytes != int64(size):
			t.Fatalf("result.SizeBytes is %v, want %v", result.SizeBytes, int64(size))
		}
		if !bytes.Equal(n.Get(destination), want) || n.Get(transfer.Part(destination)) != nil {
			t.Fatalf("%d bytes: another file arrived, or the part is still there", size)
		}
		switch {
		case r.done != int64(size):
			t.Errorf("r.done is %v, want %v", r.done, int64(size))
		case r.total != int64(size):
			t.Errorf("r.total is %v, want %v", r.total, int64(size))
		case r.ended != 1:
			t.Errorf("r.ended is %v, want 1", r.ended)
		}
		if size > 1<<20 && (result.SentBytes > int64(size)*3/4+2<<20 && result.Compressed) {
			t.Errorf("%d bytes: sent %d, compressed: %v", size, result.SentBytes, result.Compressed)
		}
		info, err := n.Files.Stat(destination)
		if err != nil || info.Modified.Sub(file.Modified).Abs() > time.Microsecond {
			t.Errorf("time %v, %v; want %v", info.Modified, err, file.Modified)
		}
		if err := n.Files.Remove(destination); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPresentFileIsNotSentAgain(t *testing.T) {
	n, want := start(t), content(1<<20, 1)
	n.Put(destination, want)
	result, err := transfer.Send(t.Context(), n.Node, local(t, want), destination, ui.Discard{})
	switch {
	case err != nil:
		t.Fatal(err)
	case result.Method != transfer.MethodNone:
		t.Fatalf("result.Method is %v, want %v", result.Method, transfer.MethodNone)
	case result.SentBytes != 0:
		t.Fatalf("result.SentBytes is %v, want 0", result.SentBytes)
	}
}

func TestAnotherFileOfTheSameSizeIsReplaced(t *testing.T) {
	n, want := start(t), content(1<<20, 1)
	n.Put(destination, content(1<<20, 2))
	if _, err := transfer.Send(t.Context(), n.Node, local(t, want), destination, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(n.Get(destination), want) {
		t.Fatal("the old file stayed")
	}
}

func TestPartsAreContinued(t *testing.T) {
	want := content(6<<20, 1)
	const looks = 3 << 16 // to measure the link
	for name, c := range map[string]struct {
		part []byte
		most int64 // bytes sent
	}{
		"half":             {want[:3<<20], 3<<20 + looks},
		"all but a byte":   {want[:len(want)-1], 100},
		"all":              {want, 0},
		"nothing":          {nil, 6<<20 + looks},
		"longer":           {append(bytes.Clone(want), 1), 6<<20 + looks},
		"of another build": {content(3<<20, 2), 9<<20 + looks},
	} {
		t.Run(name, func(t *testing.T) {
			n := start(t)
			n.Put(transfer.Part(destination), c.part)
			result, err := transfer.Send(t.Context(), n.Node, local(t, want), destination, ui.Discard{})
			switch {
			case err != nil:
				t.Fatal(err)
			case !bytes.Equal(n.Get(destination), want):
				t.Fatal("n.Get(destination) differs from want")
			}
			if result.SentBytes > c.most {
				t.Errorf("sent %d bytes, more than %d", result.SentBytes, c.most)
			}
		})
	}
}

func TestACutConnectionLeavesAPartToGoOnWith(t *testing.T) {
	n, want := start(t), content(24<<20, 1)
	file := local(t, want)
	cut := &counting{each: func(done int64) {
		if done > 12<<20 {
			n.Cut()
		}
	}}
	_, err := transfer.Send(t.Context(), n.Node, file, destination, cut)
	var lost *node.LostError
	if !errors.As(err, &lost) {
		t.Fatalf("the error is %v, a %T, want a %T", err, err, lost)
	}
	if n.Get(destination) != nil {
		t.Fatal("half a file has the staged name")
	}
	if err := n.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Send(t.Context(), n.Node, file, destination, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(n.Get(destination), want) {
		t.Fatal("another file arrived")
	}
}

func TestAFileThatChangesMeanwhileIsNamed(t *testing.T) {
	n := start(t)
	file := local(t, content(6<<20, 1))
	var once sync.Once
	r := &counting{each: func(int64) {
		once.Do(func() {
			if err := os.WriteFile(file.Path, content(5<<20, 2), 0o600); err != nil {
				t.Error(err)
			}
		})
	}}
	_, err := transfer.Send(t.Context(), n.Node, file, destination, r)
	var changed *transfer.ChangedError
	switch {
	case !errors.As(err, &changed):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, changed)
	case !strings.Contains(err.Error(), "wait for the build to finish"):
		t.Fatalf("err.Error() lacks %q:\n%s", "wait for the build to finish", err.Error())
	}
	if n.Get(destination) != nil {
		t.Fatal("a file nobody asked for was staged")
	}
}

func TestAFullDiskIsNamedAndCleanedUp(t *testing.T) {
	n := start(t)
	n.Machine.OnOperation(func(o simulated.Operation) simulated.Verdict {
		if strings.HasSuffix(o.Target, ".part") && o.Kind == simulated.OpWrite {
			return simulated.DiskFull()
		}
		return simulated.Continue()
	})
	_, err := transfer.Send(t.Context(), n.Node, local(t, content(1<<20, 1)), destination, ui.Discard{})
	if !errors.Is(err, fault.ErrDiskFull) {
		t.Fatalf("the error is %v, want %v", err, fault.ErrDiskFull)
	}
	n.Machine.OnOperation(nil)
	if n.Get(destination) != nil || n.Get(transfer.Part(destination)) != nil {
		t.Fatal("what cannot be used was left")
	}
}

func TestCancelledSend(t *testing.T) {
	n := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	r := &counting{each: func(int64) { cancel() }}
	_, err := transfer.Send(ctx, n.Node, local(t, content(24<<20, 1)), destination, r)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the error is %v, want %v", err, context.Canceled)
	}
}

func TestAFolderInTheWay(t *testing.T) {
	n := start(t)
	if err := errors.Join(n.Files.MakeFolder(`C:\k`), n.Files.MakeFolder(destination)); err != nil {
		t.Fatal(err)
	}
	_, err := transfer.Send(t.Context(), n.Node, local(t, content(10, 1)), destination, ui.Discard{})
	switch {
	case err == nil:
		t.Fatal("no error, want one")
	case !strings.Contains(err.Error(), "is a folder: remove it"):
		t.Fatalf("err.Error() lacks %q:\n%s", "is a folder: remove it", err.Error())
	}
}
