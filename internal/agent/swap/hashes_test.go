package swap_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/agent/swap"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// reads counts how often each file was opened for reading.
type reads struct {
	mu     sync.Mutex
	opened map[string]int
}

// of returns a platform that counts its reads.
func (r *reads) of(p *platform.Platform) *platform.Platform {
	counted := *p
	counted.Files = countedFiles{p.Files, r}
	return &counted
}

func (r *reads) count(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opened[strings.ToLower(path)]
}

type countedFiles struct {
	platform.Files
	reads *reads
}

func (f countedFiles) Open(path string) (io.ReadSeekCloser, error) {
	f.reads.mu.Lock()
	f.reads.opened[strings.ToLower(path)]++
	f.reads.mu.Unlock()
	return f.Files.Open(path)
}

// The session has already hashed 80 MB, and the user waits for the end of the
// transaction: neither its beginning nor its guardian reads the binaries again.
func TestBinariesAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reads{opened: map[string]int{}}
		agent := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent", Version: "v0.0.0"})
		n := &node{agent: layout.Agent(hash(agent))}
		n.Machine = simulated.New(simulated.Options{Agent: &simulated.Agent{
			Hash: hash(agent),
			Main: func(ctx context.Context, windows *platform.Platform, executable string, args []string, in io.Reader,
				out, errs io.Writer) int {
				return guardianMain(ctx, r.of(windows), executable, args, in, out, errs)
			},
		}})
		t.Cleanup(n.Close)
		n.place(t, n.agent, agent)
		c := n.stageKubelet(t, "v1.30.0", "")
		time.Sleep(time.Minute) // of the bubble's clock: new files are not trusted

		m, p := n.session()
		defer p.Exit()
		m.Platform = r.of(m.Platform)
		m.Hashes = hashcache.Load(m.Platform.Files)
		for _, path := range []string{c.Destination, c.Staged} { // as inspection and upload do
			if _, _, err := m.Hashes.Hash(t.Context(), path); err != nil {
				t.Fatal(err)
			}
		}
		id, err := swap.Begin(t.Context(), m, swap.Plan{Holder: "tester", Components: []swap.Component{c}})
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := swap.Follow(t.Context(), m, id, func(swap.Event) {})
		switch {
		case err != nil:
			t.Fatal(err)
		case outcome.Result != swap.Committed:
			t.Fatalf("outcome.Result is %v, want %v", outcome.Result, swap.Committed)
		}
		for _, path := range []string{c.Staged, c.Destination} {
			if got := r.count(path); got != 1 {
				t.Errorf("%s was read %d times", path, got)
			}
		}
		if got := r.count(layout.Previous(c.Destination)); got != 0 {
			t.Errorf("the old binary was read %d times more", got)
		}
	})
}

// A session that knows a hash must not put another file in place.
func TestAStagedFileThatChangedSinceIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		c := n.stageKubelet(t, "v1.30.0", "")
		time.Sleep(time.Minute)
		m, p := n.session()
		defer p.Exit()
		m.Hashes = hashcache.Load(m.Platform.Files)
		if _, _, err := m.Hashes.Hash(t.Context(), c.Staged); err != nil {
			t.Fatal(err)
		}
		content := n.read(t, c.Staged)
		content[len(content)-1] ^= 1 // of the same size
		n.place(t, c.Staged, content)
		if _, err := swap.Begin(t.Context(), m,
			swap.Plan{Holder: "tester", Components: []swap.Component{c}}); err == nil {
			t.Fatal("a changed file was taken for the one that was verified")
		}
	})
}
