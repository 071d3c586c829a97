package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// bench is a watch under fake time: real files, and a node and a notifier that the test controls.
type bench struct {
	t      *testing.T
	folder string
	*fakeNotifier
	options  Options
	remotes  map[string]*fakeRemote
	commands chan Command

	mutex  sync.Mutex
	events []Event
	ended  chan error
	cancel context.CancelCauseFunc
}

// onBench runs a test in a bubble of fake time; wait returns when all goroutines are idle.
func onBench(t *testing.T, test func(b *bench)) {
	t.Helper()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{
			t: t, folder: folder, fakeNotifier: &fakeNotifier{events: make(chan string)},
			remotes: map[string]*fakeRemote{}, commands: make(chan Command),
		}
		b.options = Options{Notifier: b.fakeNotifier, Examine: examineText, Report: b.hear, Commands: b.commands}
		test(b)
		b.end()
	})
}

var errHalf = errors.New("half a file")

// examineText accepts a file as complete if it ends in a dot.
func examineText(_ context.Context, binary *Binary) error {
	content, err := os.ReadFile(binary.Path)
	if err != nil || !strings.HasSuffix(string(content), ".") {
		return errHalf
	}
	return nil
}

func (b *bench) hear(e Event) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.events = append(b.events, e)
}

// binary adds a binary to the watch.
func (b *bench) binary(name string, build *Build) *Binary {
	binary := &Binary{Name: name, Path: filepath.Join(b.folder, name), Build: build}
	b.options.Binaries = append(b.options.Binaries, binary)
	return binary
}

func (b *bench) target(name string, binaries ...*Binary) *fakeRemote {
	remote := &fakeRemote{bench: b, lost: make(chan struct{})}
	target := &Target{Name: name, Remote: remote}
	for _, binary := range binaries {
		target.Components = append(target.Components, Component{Name: binary.Name, Binary: binary})
	}
	b.options.Targets = append(b.options.Targets, target)
	b.remotes[name] = remote
	return remote
}

func (b *bench) write(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.notify(path)
}

// rename writes beside the file and renames over it, as linkers do.
func (b *bench) rename(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.folder, name)
	if err := os.WriteFile(path+".tmp", []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		b.t.Fatal(err)
	}
	b.notify(path)
}

func (b *bench) notify(path string) {
	if b.ended != nil && !b.silent {
		b.fakeNotifier.events <- path
	}
}

func (b *bench) start() {
	ctx, cancel := context.WithCancelCause(context.Background())
	b.cancel, b.ended = cancel, make(chan error, 1)
	go func() { b.ended <- Run(ctx, b.options) }()
	synctest.Wait()
}

func (b *bench) end() {
	if b.ended == nil {
		return
	}
	b.cancel(errors.New("the test ends"))
	<-b.ended
}

// pass advances the time by d and waits until all goroutines are idle.
func (b *bench) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// kinds returns the kinds of the events since the last call, without those that no test checks.
func (b *bench) kinds() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var all []string
	for _, e := range b.events {
		switch e.Kind {
		case Watching, Connected, Changed, Pushing, Committing:
			continue
		}
		text := string(e.Kind)
		if e.Kind == Failed && e.Retry > 0 {
			text += fmt.Sprintf("+%s", e.Retry)
		}
		all = append(all, text)
	}
	b.events = nil
	return strings.Join(all, " ")
}

func (b *bench) want(kinds string) {
	b.t.Helper()
	if got := b.kinds(); got != kinds {
		b.t.Errorf("happened: %q, want %q", got, kinds)
	}
}

type fakeNotifier struct {
	events  chan string
	silent  bool // sends no events
	refuses bool // fails to watch any folder
}

func (n *fakeNotifier) Events() <-chan string { return n.events }
func (n *fakeNotifier) Close() error          { return nil }
func (n *fakeNotifier) Watch(string) error {
	if n.refuses {
		return errors.New("no")
	}
	return nil
}

var (
	errOften = errors.New("try again")
	errNever = errors.New("no use")
)

// fakeRemote sends for the time `sending` and swaps for the time `swapping`, and records each push:
// the names, and the content of the files when the push began.
type fakeRemote struct {
	*bench
	sending, swapping time.Duration
	connecting        []error // of the next connections
	failing           []error // of the next pushes

	lock     sync.Mutex
	lost     chan struct{}
	busy     bool
	pushes   []string
	connects int
	closed   bool
}

func (r *fakeRemote) enter() {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.busy {
		r.t.Error("two jobs at once on one node")
	}
	r.busy = true
}

func (r *fakeRemote) leave() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.busy = false
}

func (r *fakeRemote) Connect(ctx context.Context) error {
	r.enter()
	defer r.leave()
	r.lock.Lock()
	defer r.lock.Unlock()
	r.connects++
	if len(r.connecting) > 0 {
		err := r.connecting[0]
		r.connecting = r.connecting[1:]
		return err
	}
	r.lost = make(chan struct{})
	return nil
}

func (r *fakeRemote) Lost() <-chan struct{} {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.lost
}

// cut breaks the connection.
func (r *fakeRemote) cut() {
	r.lock.Lock()
	defer r.lock.Unlock()
	close(r.lost)
}

func (r *fakeRemote) Push(ctx context.Context, order Order) (any, error) {
	r.enter()
	defer r.leave()
	var what []string
	for _, name := range order.Names {
		content, _ := os.ReadFile(filepath.Join(r.folder, name))
		what = append(what, name+"="+string(content))
	}
	if order.Force {
		what = append(what, "forced")
	}
	if err := sleep(ctx, r.sending); err != nil {
		return nil, err
	}
	if len(r.failing) > 0 {
		err := r.failing[0]
		r.failing = r.failing[1:]
		return nil, err
	}
	if !order.Commit() {
		return nil, errors.New("there is a newer one")
	}
	if err := sleep(ctx, r.swapping); err != nil {
		return nil, fmt.Errorf("the node goes on alone: %w", err)
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.pushes = append(r.pushes, strings.Join(what, " "))
	return nil, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *fakeRemote) RollBack(context.Context) (any, error) {
	r.enter()
	defer r.leave()
	r.lock.Lock()
	defer r.lock.Unlock()
	r.pushes = append(r.pushes, "back")
	return nil, nil
}

func (r *fakeRemote) Retry(err error) bool { return errors.Is(err, errOften) }

func (r *fakeRemote) Close(context.Context) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.closed = true
}

// got returns the pushes since the last call.
func (r *fakeRemote) got() string {
	r.lock.Lock()
	defer r.lock.Unlock()
	all := strings.Join(r.pushes, "; ")
	r.pushes = nil
	return all
}

func (r *fakeRemote) expect(pushes string) {
	r.t.Helper()
	if got := r.got(); got != pushes {
		r.t.Errorf("pushed: %q, want %q", got, pushes)
	}
}
