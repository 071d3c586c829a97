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

	"github.com/swdt-dev/swdt/internal/obtain/blobs"
	"github.com/swdt-dev/swdt/internal/wire/delta"
)

const (
	// wholeAtOnce bounds the nodes that receive whole files at the same time. More nodes would share the
	// same uplink: none would finish earlier, and each send holds memory.
	wholeAtOnce = 16
	// largestDiff is the size, in bytes, of the largest file for which a patch is made. It bounds
	// the memory of a diff, which holds both files.
	largestDiff = 1 << 30
	// smallestDiff is the size, in bytes, below which sending all bytes is always the fastest way.
	smallestDiff = 256 << 10
	// costsFile is the file in the store's folder that keeps the costs of sending.
	costsFile = "costs.json"
	// patchesKept bounds the patches that are kept for further nodes.
	patchesKept = 6
	// guessesKept bounds the number of files for which an estimate is kept. All nodes share these
	// estimates.
	guessesKept = 16
)

// Depot is the state that the sends of a run share, for any number of nodes: your machine's store of
// files, the patches that were made, the cost of making them, and a bound on uploads. Keep one Depot for
// as long as swdt runs. It is safe for concurrent use.
type Depot struct {
	store   *blobs.Store
	costs   costs
	diffs   atomic.Int64
	whole   chan struct{} // has one element for each whole file under way
	diffing chan struct{} // has an element while a diff runs, which uses all processors

	mu      sync.Mutex
	patches map[patchKey]*making
	order   []patchKey
	keeping map[string]chan struct{}
	guesses map[string]estimate // by the SHA-256 of the file to send
	ahead   map[string]guess    // by the SHA-256 of the file to send
}

// NewDepot returns a Depot that uses the store.
func NewDepot(store *blobs.Store) *Depot {
	d := &Depot{
		store: store, whole: make(chan struct{}, wholeAtOnce), diffing: make(chan struct{}, 1),
		patches: map[patchKey]*making{}, keeping: map[string]chan struct{}{}, guesses: map[string]estimate{},
		ahead: map[string]guess{},
	}
	d.costs.load(filepath.Join(store.Folder(), costsFile))
	return d
}

// Has reports whether the store has a file with this hash, without a look at its content.
func (d *Depot) Has(sha256 string) bool { return d.store.Has(sha256) }

// Path returns the path of the store's file with this hash, whose content it has verified; blobs.ErrNotHeld if there is
// none.
func (d *Depot) Path(ctx context.Context, sha256 string) (string, error) {
	return d.store.Path(ctx, sha256)
}

// RecordInstalled records that a push has left a build of a program, given by its SHA-256, on a
// node. The next push of the program will probably send the difference to that build.
func (d *Depot) RecordInstalled(program, sha string) {
	if d.costs.recordInstalled(program, sha) {
		d.remember()
	}
}

// Ahead makes the patch that a Send of the file will use if the node has the build that the last
// push left. Callers use Ahead while they wait for something else, such as the connection to the
// node. If the node has another build, only your machine's time is lost: a Send with another base
// cancels Ahead.
func (d *Depot) Ahead(ctx context.Context, file File) {
	base := d.costs.installed(file.Label)
	if base == "" || base == file.SHA256 || !file.worthComparing() || !d.store.Has(base) {
		return
	}
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	d.mu.Lock()
	d.ahead[file.SHA256] = guess{base, giveUp}
	d.mu.Unlock()
	_, _ = d.patch(ctx, patchKey{base, file.SHA256, delta.Fast}, file) // a Send that uses the patch gets the error
}

// guess records the base from which Ahead is making a patch.
type guess struct {
	base   string
	giveUp context.CancelFunc
}

// cancelAhead cancels the patch that Ahead has begun for a file, unless the patch has the given
// base. With an empty base it always cancels the patch.
func (d *Depot) cancelAhead(file, base string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if guess, ok := d.ahead[file]; ok && guess.base != base {
		guess.giveUp()
	}
	delete(d.ahead, file)
}

// Diffs returns how many patches were computed so far.
func (d *Depot) Diffs() int { return int(d.diffs.Load()) }

// remember stores the costs of sending for the next run.
func (d *Depot) remember() { d.costs.save(filepath.Join(d.store.Folder(), costsFile)) }

// estimate returns the expected costs of sending a file. The estimate of a file stays the same for
// all nodes of a push, even after measurements on the first nodes: all nodes should use the same
// patch.
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

// Keep stores a copy of a file that a node has or will soon have, since the next build will differ
// little from that file. If several nodes need the same file, Keep makes one copy.
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
		return nil // the call that copies the file returns the error
	}
	defer func() {
		d.mu.Lock()
		delete(d.keeping, file.SHA256)
		d.mu.Unlock()
		close(done)
	}()
	err := d.store.Put(ctx, file.Path, file.SHA256)
	if err == nil && file.changed() {
		d.store.RemoveDamaged(file.SHA256) // a build changed the file during the copy
	}
	return err
}

// enter waits until fewer than wholeAtOnce whole files are being sent. A send without a
// Depot does not wait.
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

// patch turns one file into another.
type patch struct {
	bytes []byte
	took  time.Duration
	info  delta.Info
}

// making is a patch that is being made, or was made. It serves all sends that need the patch.
type making struct {
	done    chan struct{}
	cancel  context.CancelFunc
	chosen  bool
	waiting int // sends that wait for the patch; at 0 an unfinished patch is cancelled
	patch   patch
	err     error
}

// patch returns the patch from a base in the store to the file. The first call starts to make the
// patch; other calls wait for the same result. If no call waits for the patch any more, its making
// is cancelled.
func (d *Depot) patch(ctx context.Context, key patchKey, file File) (patch, error) {
	m := d.join(ctx, key, file)
	select {
	case <-m.done:
	case <-ctx.Done():
	}
	d.release(key, m)
	select {
	case <-m.done:
		return m.patch, m.err
	default:
		return patch{}, context.Cause(ctx)
	}
}

// begun returns a patch that exists or is being made. It returns false if there is no such patch, or if
// making it fails.
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

// made reports whether a patch exists, or is being made and certainly needed.
func (d *Depot) made(key patchKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, ok := d.patches[key]
	return ok && (m.chosen || m.ended() && m.err == nil)
}

// choose records that a patch will be needed. The patch may still be in the making.
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

// release ends one call's wait for a patch. If no call waits for an unfinished patch any more,
// release cancels it. It also drops a patch that failed, so that the next call makes the patch
// again.
func (d *Depot) release(key patchKey, m *making) {
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

// forget drops the oldest patch that no call waits for, once patchesKept patches are kept.
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
			return old, new, fmt.Errorf("%q is not a SHA-256", text)
		}
	}
	return old, new, nil
}

// verifyBase verifies the hash of a base after a patch from it has failed. If the base is damaged,
// the store removes the base, so that the next push does not fail for the same reason.
func (d *Depot) verifyBase(ctx context.Context, base string) {
	_, _ = d.store.Path(ctx, base)
}

// diff computes a patch. Only one diff runs at a time, since each uses all processors and the memory of
// two files.
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
	// Neither file is hashed again, which would delay the push. If one of them is damaged, the node
	// detects that the result is not the announced file.
	info, err := delta.Diff(ctx, old.Bytes, content, &out, delta.Options{
		Variant: key.variant, OldSHA256: &oldHash, NewSHA256: &newHash,
	})
	if err != nil {
		return patch{}, fmt.Errorf("compare %s with its base: %w", file.Path, err)
	}
	took := time.Since(begun)
	defer d.remember()
	d.costs.recordDiff(key.variant, file.Label, info.OldSize, info.NewSize, int64(out.Len()), took)
	return patch{bytes: out.Bytes(), took: took, info: info}, nil
}

// read reads both files concurrently, since reading mostly waits for the kernel. It copies the new file
// into memory, since a linker may already be writing that file again.
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
