package delta

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
)

// Apply writes the new file that a patch makes of the old one. It reads the old file in parts and
// holds neither the old nor the new file in memory. The output is the new file only if Apply
// returns no error, since the hash is known only at the end. Apply does not read the parts of the
// old file that the patch does not need, and so does not check the old file as a whole. To find out
// beforehand whether the old file is the right one, a caller compares the hash of the old file with
// Header.OldSHA256. If the patch itself is at fault, the error is a *CorruptError.
func Apply(ctx context.Context, old io.ReaderAt, oldSize int64, patch io.Reader, w io.Writer) (Info, error) {
	sum := sha256.New()
	info, err := Make(ctx, old, oldSize, patch, io.MultiWriter(sum, w))
	if err != nil {
		return Info{}, err
	}
	if [32]byte(sum.Sum(nil)) != info.NewSHA256 {
		return Info{}, corrupt("the result does not have the expected hash")
	}
	return info, nil
}

// Make is Apply without the check of the hash. It is for callers that hash the output themselves,
// for example because they read the written file back from a disk. The output is the new file only
// if its hash is Info.NewSHA256.
func Make(ctx context.Context, old io.ReaderAt, oldSize int64, patch io.Reader, w io.Writer) (Info, error) {
	counted := &countingReader{r: patch}
	h, err := ReadHeader(counted)
	if err != nil {
		return Info{}, err
	}
	if h.OldSize != oldSize {
		return Info{}, corrupt("it applies to a file of %d bytes, not of %d", h.OldSize, oldSize)
	}
	a := &applier{ctx: ctx, header: h, old: newPages(old, oldSize), w: w}
	defer a.close()
	if err := a.open(counted); err != nil {
		return Info{}, err
	}
	if err := a.run(); err != nil {
		return Info{}, err
	}
	return Info{OldSize: h.OldSize, NewSize: h.NewSize, PatchSize: counted.n,
		OldSHA256: h.OldSHA256, NewSHA256: h.NewSHA256, Variant: h.Variant}, nil
}

// applier is one run of Make.
type applier struct {
	ctx    context.Context
	header Header
	old    *pages
	w      io.Writer

	streams  [streamCount][]byte // compressed
	literals *decoder
	changes  changes // corrections of bytes
	words    changes
	operands changes
	predict  *predictor
	lap      int64
	buffer   [chunk]byte
	written  int64
}

func (a *applier) open(patch *countingReader) (err error) {
	if a.header.Variant != Whole {
		if err := a.readStreams(patch); err != nil {
			return err
		}
	}
	if a.literals, err = newDecoder("its literals", patch); err != nil {
		return err
	}
	if err := a.changes.open(a, streamGaps, streamValues); err != nil {
		return err
	}
	if err := a.words.open(a, streamWordGaps, streamWordErrors); err != nil {
		return err
	}
	if err := a.operands.open(a, streamOperandGaps, streamOperandErrors); err != nil {
		return err
	}
	if a.header.Variant == Whole {
		return nil
	}
	return a.openPredictor()
}

// openPredictor reads the layout of both executables. For Small it also reads all blocks of the
// patch and records by how much the blocks move addresses. The method run reads the blocks a second
// time to make the file.
func (a *applier) openPredictor() error {
	images, err := a.stream(streamImages)
	if err != nil {
		return err
	}
	defer images.close()
	from, err := readImage(images, a.header.OldSize)
	if err != nil {
		return err
	}
	to, err := readImage(images, a.header.NewSize)
	if err != nil {
		return err
	}
	if err := images.end(); err != nil {
		return err
	}
	if a.header.Variant == Fast {
		a.predict = newPredictor(from, to, nil)
		return nil
	}
	moved := newBlockMap(from, to)
	if err := a.blocks(func(b span) error { moved.add(b); return a.ctx.Err() }); err != nil {
		return err
	}
	moved.complete()
	a.predict = newPredictor(from, to, moved)
	return nil
}

// readStreams reads the compressed streams into memory as they arrive. So a patch that declares
// more bytes than it contains needs only the memory for the bytes that it contains.
func (a *applier) readStreams(patch *countingReader) error {
	var sizes [streamCount]uint64
	total := uint64(0)
	for i := range sizes {
		size, err := readUvarint(patch)
		if err != nil {
			return readError("its table of streams", err)
		}
		if total += size; total > uint64(a.header.NewSize)+maxStream {
			return corrupt("its streams are larger than the file that it makes")
		}
		sizes[i] = size
	}
	for i, size := range sizes {
		var err error
		if a.streams[i], err = io.ReadAll(io.LimitReader(patch, int64(size))); err != nil {
			return readError("its streams", err)
		}
		if uint64(len(a.streams[i])) != size {
			return readError("its streams", io.ErrUnexpectedEOF)
		}
	}
	return nil
}

func (a *applier) run() error {
	err := a.blocks(func(b span) error {
		if err := a.literal(b.new); err != nil {
			return err
		}
		return a.block(b)
	})
	if err != nil {
		return err
	}
	if err := a.literal(a.header.NewSize); err != nil {
		return err
	}
	return a.finished()
}

// literal copies literals to the new file until the new file has `until` bytes.
func (a *applier) literal(until int64) error {
	for a.written < until {
		part := a.buffer[:min(chunk, until-a.written)]
		if err := a.literals.full(part); err != nil {
			return err
		}
		if err := a.write(part); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) block(b span) error {
	if l := lap(b, a.header.NewSize); l != a.lap {
		a.predict.forget()
		a.lap = l
	}
	for done := int64(0); done < b.n; {
		part := a.buffer[:min(chunk, b.n-done)]
		if err := a.old.read(part, b.old+done); err != nil {
			return err
		}
		if err := a.predict.part(part, b.old+done, b.new+done, a.words.corrector(), a.operands.corrector()); err != nil {
			return err
		}
		if err := a.changes.apply(part); err != nil {
			return err
		}
		if err := a.write(part); err != nil {
			return err
		}
		done += int64(len(part))
	}
	return nil
}

func (a *applier) write(part []byte) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if _, err := a.w.Write(part); err != nil {
		return fmt.Errorf("write the patched file: %w", err)
	}
	a.written += int64(len(part))
	return nil
}

// finished returns an error if the method run has not used every part of the patch.
func (a *applier) finished() error {
	if a.changes.more || a.words.more || a.operands.more {
		return corrupt("it has differences beyond the end of the file")
	}
	return a.literals.end()
}

func (a *applier) close() {
	a.literals.close()
	a.changes.close()
	a.words.close()
	a.operands.close()
}
