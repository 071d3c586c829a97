package delta

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Options configure Diff. The zero value selects Fast with as many workers as
// there are processors.
type Options struct {
	Variant Variant
	Workers int
	// OldSHA256 and NewSHA256 are the SHA-256 of the files. If one of them is nil, Diff computes
	// the hash.
	OldSHA256, NewSHA256 *[32]byte
}

const (
	segments       = 8       // largest number of parts of the new file that are matched independently
	minimumSegment = 1 << 20 // bytes

	// tidyFrom is the file size from which it is worthwhile to free memory
	// early.
	tidyFrom = 32 << 20
)

// Diff writes the patch that makes the file `new` from the file `old`. The same files and variant
// result in the same patch, whatever the number of workers.
func Diff(ctx context.Context, old, new []byte, w io.Writer, o Options) (Info, error) {
	if int64(len(old)) > maxSize || int64(len(new)) > maxSize {
		return Info{}, fmt.Errorf("make a patch: files of %d and %d bytes are larger than %d", len(old),
			len(new), int64(maxSize))
	}
	d := &differ{old: old, new: new, variant: max(o.Variant, Fast), workers: o.Workers}
	if d.workers < 1 {
		d.workers = runtime.GOMAXPROCS(0)
	}
	header := Header{OldSize: int64(len(old)), NewSize: int64(len(new))}
	var hashing sync.WaitGroup
	hashing.Go(func() { header.OldSHA256 = hashUnlessKnown(o.OldSHA256, old) })
	hashing.Go(func() { header.NewSHA256 = hashUnlessKnown(o.NewSHA256, new) })
	err := d.run(ctx)
	hashing.Wait()
	if err != nil {
		return Info{}, fmt.Errorf("make a patch: %w", err)
	}
	header.Variant = d.variant
	counted := &counter{w: w}
	if err := d.write(ctx, counted, header); err != nil {
		return Info{}, fmt.Errorf("write a patch: %w", err)
	}
	return Info{OldSize: header.OldSize, NewSize: header.NewSize, PatchSize: counted.n,
		OldSHA256: header.OldSHA256, NewSHA256: header.NewSHA256, Variant: d.variant}, nil
}

// differ is one run of Diff.
type differ struct {
	old, new []byte
	variant  Variant
	workers  int

	oldImage, newImage image // empty unless both files are x86-64 executables
	blocks             []block
	streams            [streamCount][]byte
}

func (d *differ) run(ctx context.Context) error {
	d.oldImage, d.newImage = parseImage(d.old), parseImage(d.new)
	if d.oldImage.span == 0 || d.newImage.span == 0 {
		d.oldImage, d.newImage, d.variant = image{}, image{}, Fast
	}
	if !resemble(ctx, d.old, d.new) {
		d.variant = Whole
		return ctx.Err()
	}
	if err := d.match(ctx); err != nil {
		return err
	}
	if totalBytes(d.blocks) < len(d.new)/8 {
		d.variant = Whole
		return nil
	}
	d.tidy() // match no longer needs the index and the masks
	d.control()
	if err := d.encodeCorrections(ctx); err != nil {
		return err
	}
	d.tidy() // encodeCorrections no longer needs the map of blocks
	return d.compress()
}

// tidy frees memory that is no longer needed, so that the next allocations can reuse this memory.
// Without tidy, peak memory is tens of megabytes higher. One call takes about a millisecond.
func (d *differ) tidy() {
	if len(d.new) > tidyFrom {
		runtime.GC()
	}
}

// match finds the blocks, independently for each segment of the new file.
func (d *differ) match(ctx context.Context) error {
	m := &matcher{old: masked{data: d.old}, new: masked{data: d.new}}
	if d.variant == Small {
		m.old.mask, m.new.mask = operandMask(d.old, d.oldImage, d.each), operandMask(d.new, d.newImage, d.each)
	}
	m.index = newIndex(ctx, m.old, d.workers)
	bounds := d.bounds()
	found := make([][]block, len(bounds)-1)
	d.each(len(found), func(i int) { found[i] = m.segment(ctx, bounds[i], bounds[i+1]) })
	d.blocks = join(found)
	d.blocks = refine(d.old, d.new, d.blocks)
	return ctx.Err()
}

func (d *differ) bounds() []int {
	n := min(max(len(d.new)/minimumSegment, 1), segments)
	bounds := make([]int, n+1)
	for i := range bounds {
		bounds[i] = int(int64(len(d.new)) * int64(i) / int64(n))
	}
	return bounds
}

// each calls the function `work` with each number from 0 to n-1, distributed over the workers.
func (d *differ) each(n int, work func(i int)) {
	var group sync.WaitGroup
	queue := make(chan int, n)
	for i := range n {
		queue <- i
	}
	close(queue)
	for range min(d.workers, n) {
		group.Go(func() {
			for i := range queue {
				work(i)
			}
		})
	}
	group.Wait()
}

// control encodes the positions and sizes of the blocks.
func (d *differ) control() {
	var skips, sizes, moves []byte
	var last block
	for _, b := range d.blocks {
		skips = binary.AppendUvarint(skips, uint64(b.new-last.newEnd()))
		sizes = binary.AppendUvarint(sizes, uint64(b.n))
		moves = binary.AppendVarint(moves, int64(b.displacement()-last.displacement()))
		last = b
	}
	d.streams[streamSkips], d.streams[streamSizes], d.streams[streamMoves] = skips, sizes, moves
}

// compress replaces the streams by their compressed forms. The workers share
// encoders, which have tables of many megabytes.
func (d *differ) compress() error {
	longest := map[zstd.EncoderLevel]int{}
	for _, stream := range d.streams {
		l := level(len(stream))
		longest[l] = max(longest[l], len(stream))
	}
	encoders := map[zstd.EncoderLevel]*zstd.Encoder{}
	for l, size := range longest {
		e, err := newEncoder(nil, l, d.workers, size)
		if err != nil {
			return err
		}
		encoders[l] = e
	}
	d.each(streamCount, func(i int) {
		if raw := d.streams[i]; len(raw) > 0 {
			d.streams[i] = encoders[level(len(raw))].EncodeAll(raw, nil)
		}
	})
	return nil
}

// level returns the compression level for a stream of `size` bytes. Streams are large if the files
// have little in common. Such streams get a fast level, since sending them takes less time than
// compressing them further.
func level(size int) zstd.EncoderLevel {
	if size > 4<<20 {
		return zstd.SpeedFastest
	}
	return zstd.SpeedBetterCompression
}

// newEncoder returns an encoder for streams of up to `size` bytes. For each worker, it keeps twice
// that size in memory, or twice a window if that is less.
func newEncoder(w io.Writer, level zstd.EncoderLevel, workers, size int) (*zstd.Encoder, error) {
	window := min(windowSize, max(zstd.MinWindowSize, 1<<bits.Len(uint(size))))
	return zstd.NewWriter(w, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(workers),
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(false))
}

func (d *differ) write(ctx context.Context, w io.Writer, h Header) error {
	head := h.append(nil)
	if h.Variant != Whole {
		for _, stream := range d.streams {
			head = binary.AppendUvarint(head, uint64(len(stream)))
		}
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	if h.Variant != Whole {
		for _, stream := range d.streams {
			if _, err := w.Write(stream); err != nil {
				return err
			}
		}
	}
	return d.writeLiterals(ctx, w)
}

// writeLiterals compresses the bytes of the new file that are in no block.
func (d *differ) writeLiterals(ctx context.Context, w io.Writer) error {
	if d.variant == Whole {
		d.blocks = nil
	}
	size := len(d.new) - totalBytes(d.blocks)
	e, err := newEncoder(w, level(size), d.workers, size)
	if err != nil {
		return err
	}
	at := 0
	for _, b := range append(d.blocks, block{new: len(d.new)}) {
		for at < b.new {
			end := min(b.new, at+1<<20)
			if _, err := e.Write(d.new[at:end]); err != nil {
				return err
			}
			if at = end; ctx.Err() != nil {
				return ctx.Err()
			}
		}
		at = b.newEnd()
	}
	return e.Close()
}

func hashUnlessKnown(known *[32]byte, data []byte) [32]byte {
	if known != nil {
		return *known
	}
	return sha256.Sum256(data)
}

// counter counts the bytes written through it.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
