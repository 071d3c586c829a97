package delta

import (
	"errors"
	"io"
)

// span is a block as read from a patch, checked against both files' sizes.
type span struct {
	new, old, n int64
}

// spans reads the blocks of a patch one by one, so that the memory does not depend on their number.
type spans struct {
	header              Header
	skips, sizes, moves *decoder
	last                span
}

// blocks calls f for each block of the patch.
func (a *applier) blocks(f func(span) error) error {
	s := &spans{header: a.header}
	defer s.close()
	var err error
	if s.skips, err = a.stream(streamSkips); err != nil {
		return err
	}
	if s.sizes, err = a.stream(streamSizes); err != nil {
		return err
	}
	if s.moves, err = a.stream(streamMoves); err != nil {
		return err
	}
	for {
		b, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(b); err != nil {
			return err
		}
	}
}

// next returns the next block, or io.EOF.
func (s *spans) next() (span, error) {
	skip, err := s.skips.number()
	if errors.Is(err, io.EOF) {
		if err := s.sizes.end(); err != nil {
			return span{}, err
		}
		if err := s.moves.end(); err != nil {
			return span{}, err
		}
		return span{}, io.EOF
	}
	if err != nil {
		return span{}, err
	}
	n, err := s.sizes.number()
	if err != nil {
		return span{}, s.sizes.failed(err)
	}
	move, err := s.moves.number()
	if err != nil {
		return span{}, s.moves.failed(err)
	}
	b := span{new: s.last.new + s.last.n + skip, n: n}
	b.old = b.new + s.last.old - s.last.new + unzigzag(move)
	if n == 0 || b.new+n > s.header.NewSize || b.old < 0 || b.old+n > s.header.OldSize {
		return span{}, corrupt("a block of %d bytes from %d to %d is outside the files", n, b.old, b.new)
	}
	s.last = b
	return b, nil
}

func (s *spans) close() {
	s.skips.close()
	s.sizes.close()
	s.moves.close()
}
