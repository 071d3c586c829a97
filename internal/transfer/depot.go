package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/swdt-dev/swdt/internal/blobs"
	"github.com/swdt-dev/swdt/internal/delta"
)

const (
	// wholeAtOnce bounds the nodes that whole files go to at the same time. More
	// share the same uplink: none would be done earlier, and all hold memory.
	wholeAtOnce = 16
	// largestDiff bounds the memory of a diff, which holds both files.
	largestDiff = 1 << 30
	// smallestDiff is the size below which nobody can wait less than for all of it.
	smallestDiff = 256 << 10
	// costsFile is where the store's folder has what sending cost.
	costsFile = "costs.json"
	// patchesKept bounds the patches that are remembered for more nodes.
	patchesKept = 6
	// guessesKept bounds the files whose cost is not guessed anew for each node.
	guessesKept = 16
)

// Depot is what the sends of a run share, to however many nodes they go: the
// host's store of files, the patches that were made, what making them cost, and
// a bound on uploads. Keep one for as long as swdt runs. It is safe for
// concurrent use.
type Depot struct {
	store   *blobs.Store
	costs   costs
	diffs   atomic.Int64
	whole   chan struct{} // holds one for each whole file under way
	diffing chan struct{} // held by the diff at work, which uses all processors

	mu      sync.Mutex
	patches map[patchKey]*making
	order   []patchKey
	keeping map[string]chan struct{}
	guesses map[string]estimate // by the SHA-256 of what is to be sent
	ahead   map[string]guess    // the same
}

// NewDepot makes a Depot on a store.
func NewDepot(store *blobs.Store) *Depot {
	d := &Depot{
		store: store, whole: make(chan struct{}, wholeAtOnce), diffing: make(chan struct{}, 1),
		patches: map[patchKey]*making{}, keeping: map[string]chan struct{}{}, guesses: map[string]estimate{}, ahead: map[string]guess{},
	}
	d.costs.load(filepath.Join(store.Folder(), costsFile))
	return d
}

// Stands notes that a push has left a build of a program, by its SHA-256, on a node:
// that is what the next build will probably be compared with.
func (d *Depot) Stands(program, sha string) {
	if d.costs.stands(program, sha) {
		d.remember()
	}
}

// Ahead makes the patch that a Send of the file is going to want where the node has
// what the last push left. It is for while somebody waits for something else, such
// as the connection to the node. In vain it costs nothing but this host's time: a
// Send with another base gives it up.
func (d *Depot) Ahead(ctx context.Context, file File) {
	base := d.costs.standing(file.Label)
	if base == "" || base == file.SHA256 || !file.worthComparing() || !d.store.Has(base) {
		return
	}
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	d.mu.Lock()
	d.ahead[file.SHA256] = guess{base, giveUp}
	d.mu.Unlock()
	_, _ = d.patch(ctx, patchKey{base, file.SHA256, delta.Fast}, file) // who wants it will see what is wrong
}

// guess is the base that a patch was begun ahead for.
type guess struct {
	base   string
	giveUp context.CancelFunc
}

// settle gives up what was begun ahead for a file, where the base is another; empty:
// there is none.
func (d *Depot) settle(file, base string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if guess, ok := d.ahead[file]; ok && guess.base != base {
		guess.giveUp()
	}
	delete(d.ahead, file)
}

// Diffs is how many patches were computed so far.
func (d *Depot) Diffs() int { return int(d.diffs.Load()) }

// remember keeps what sending cost for the next run.
func (d *Depot) remember() { d.costs.save(filepath.Join(d.store.Folder(), costsFile)) }

// estimate is what sending a file should cost. It is the same for all nodes of a
// push, whatever was learned from the first of them: they should want one patch.
func (d *Depot) estimate(file File) estimate {
	d.mu.Lock()
	defer d.mu.Unlock()
	guess, ok := d.guesses[file.SHA256]
	if !ok {
		if len(d.guesses) >= guessesKept {
			clear(d.guesses)
		}
		guess = d.costs.of(file.Label)
		d.guesses[file.SHA256] = guess
	}
	return guess
}

// Keep keeps a copy of a file in the store: it, or what is made of it, is on a
// node, and is what the next build will differ little from. Several nodes' wishes
// for the same file are one copy.
func (d *Depot) Keep(ctx context.Context, file File) error {
	d.mu.Lock()
	done, ok := d.keeping[file.SHA256]
	if !ok {
		done = make(chan struct{})
		d.keeping[file.SHA256] = done
	}
	d.mu.Unlock()
	if ok {
		select {
		case <-done:
		case <-ctx.Done():
		}
		return nil // whoever copies it says what is wrong
	}
	defer func() {
		d.mu.Lock()
		delete(d.keeping, file.SHA256)
		d.mu.Unlock()
		close(done)
	}()
	err := d.store.Put(ctx, file.Path, file.SHA256)
	if err == nil && file.changed() {
		d.store.Reject(file.SHA256) // a build wrote it while it was copied
	}
	return err
}

// enter waits for a place among the whole files under way. A send without a Depot
// is one of few.
func (d *Depot) enter(ctx context.Context) (leave func(), err error) {
	if d == nil {
		return func() {}, nil
	}
	select {
	case d.whole <- struct{}{}:
		return func() { <-d.whole }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type patchKey struct {
	old, new string
	variant  delta.Variant
}

// patch is what makes one file of another.
type patch struct {
	bytes []byte
	took  time.Duration
	info  delta.Info
}

// making is a patch that somebody makes, or has made, for all who want it.
type making struct {
	done    chan struct{}
	cancel  context.CancelFunc
	chosen  bool
	waiting int // who wants it; nobody: it is given up
	patch   patch
	err     error
}

// patch gives the patch from a held base to the file. It is made once, for
// whoever asks first, and given up when nobody waits for it any more.
func (d *Depot) patch(ctx context.Context, key patchKey, file File) (patch, error) {
	m := d.join(ctx, key, file)
	select {
	case <-m.done:
	case <-ctx.Done():
	}
	d.leave(key, m)
	select {
	case <-m.done:
		return m.patch, m.err
	default:
		return patch{}, context.Cause(ctx)
	}
}

// begun gives a patch that somebody has made or is at, and false where nobody is, or
// it comes to nothing.
func (d *Depot) begun(ctx context.Context, key patchKey, file File) (patch, bool) {
	d.mu.Lock()
	_, ok := d.patches[key]
	d.mu.Unlock()
	if !ok {
		return patch{}, false
	}
	p, err := d.patch(ctx, key, file)
	return p, err == nil
}

// made is whether a patch is there already, or is being made whatever happens.
func (d *Depot) made(key patchKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, ok := d.patches[key]
	return ok && (m.chosen || m.ended() && m.err == nil)
}

// choose says that a patch, which is being made perhaps, is going to be needed.
func (d *Depot) choose(key patchKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m, ok := d.patches[key]; ok {
		m.chosen = true
	}
}

func (m *making) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

func (d *Depot) join(ctx context.Context, key patchKey, file File) *making {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, ok := d.patches[key]
	if !ok {
		m = &making{done: make(chan struct{})}
		ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
		d.forget()
		d.patches[key] = m
		d.order = append(d.order, key)
		go func() {
			defer close(m.done)
			m.patch, m.err = d.diff(ctx, key, file)
		}()
	}
	m.waiting++
	return m
}

// leave gives a patch up that nobody wants, and forgets a failure: the next one
// to ask is to try again.
func (d *Depot) leave(key patchKey, m *making) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m.waiting--
	failed := m.ended() && m.err != nil
	if m.waiting == 0 && !m.ended() {
		m.cancel()
		failed = true
	}
	if failed && d.patches[key] == m {
		d.drop(key)
	}
}

// forget drops the oldest patch that nobody waits for, where there are many.
func (d *Depot) forget() {
	if len(d.order) < patchesKept {
		return
	}
	for _, key := range d.order {
		if d.patches[key].waiting == 0 {
			d.drop(key)
			return
		}
	}
}

func (d *Depot) drop(key patchKey) {
	delete(d.patches, key)
	for i, other := range d.order {
		if other == key {
			d.order = append(d.order[:i], d.order[i+1:]...)
			return
		}
	}
}

func (k patchKey) hashes() (old, new [sha256.Size]byte, err error) {
	for text, into := range map[string]*[sha256.Size]byte{k.old: &old, k.new: &new} {
		sum, err := hex.DecodeString(text)
		if err != nil || copy(into[:], sum) != len(sum) {
			return old, new, fmt.Errorf("%q is no SHA-256", text)
		}
	}
	return old, new, nil
}

// doubt looks whether a base is what its name says, after a patch of it failed.
// One that is damaged is removed: the next push would fail by it too.
func (d *Depot) doubt(ctx context.Context, base string) {
	_, _ = d.store.Path(ctx, base)
}

// diff computes a patch. One at a time: each uses all processors, and the memory
// for two files.
func (d *Depot) diff(ctx context.Context, key patchKey, file File) (patch, error) {
	select {
	case d.diffing <- struct{}{}:
		defer func() { <-d.diffing }()
	case <-ctx.Done():
		return patch{}, context.Cause(ctx)
	}
	begun := time.Now()
	old, content, err := d.read(key.old, file.Path)
	if err == nil {
		err = context.Cause(ctx)
	}
	defer old.Close()
	if err != nil {
		return patch{}, err
	}
	if file.changed() {
		return patch{}, &ChangedError{Path: file.Path}
	}
	oldHash, newHash, err := key.hashes()
	if err != nil {
		return patch{}, err
	}
	d.diffs.Add(1)
	var out bytes.Buffer
	// Neither file is hashed again, for which somebody would wait: whatever is
	// wrong with them, the node does not make the announced file of it.
	info, err := delta.Diff(ctx, old.Bytes, content, &out, delta.Options{
		Variant: key.variant, OldSHA256: &oldHash, NewSHA256: &newHash,
	})
	if err != nil {
		return patch{}, fmt.Errorf("compare %s with its base: %w", file.Path, err)
	}
	took := time.Since(begun)
	defer d.remember()
	d.costs.sawDiff(key.variant, file.Label, info.OldSize, info.NewSize, int64(out.Len()), took)
	return patch{bytes: out.Bytes(), took: took, info: info}, nil
}

// read reads both files at the same time: that is mostly the kernel handing out
// memory. The new one is copied, since a linker may be at it again.
func (d *Depot) read(base, path string) (old blobs.Content, content []byte, err error) {
	var both errgroup.Group
	both.Go(func() (err error) {
		old, err = d.store.Read(base)
		return err
	})
	both.Go(func() (err error) {
		if content, err = os.ReadFile(path); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		return nil
	})
	err = both.Wait()
	return old, content, err
}
