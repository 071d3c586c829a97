package delta

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// changes reads sparse corrections from a patch, in the order of the new file's blocks. The method
// apply adds corrections to bytes; the method corrector is for predicted words and operands.
type changes struct {
	gaps, values *decoder
	gap          int64 // number of items before the next value
	more         bool
}

func (c *changes) open(a *applier, gaps, values int) (err error) {
	if c.gaps, err = a.stream(gaps); err != nil {
		return err
	}
	if c.values, err = a.stream(values); err != nil {
		return err
	}
	return c.next()
}

func (c *changes) close() {
	c.gaps.close()
	c.values.close()
}

func (c *changes) next() error {
	gap, err := c.gaps.number()
	if errors.Is(err, io.EOF) {
		c.gap, c.more = math.MaxInt64, false // more than a file has items
		return c.values.end()
	}
	c.gap, c.more = gap, true
	return err
}

// apply corrects the bytes of a part: to each byte for which the patch has a value, it adds the
// value.
func (c *changes) apply(part []byte) error {
	at := int64(0)
	for c.gap < int64(len(part))-at {
		at += c.gap
		value, err := c.values.ReadByte()
		if err != nil {
			return c.values.failed(err)
		}
		part[at] += value
		at++
		if err := c.next(); err != nil {
			return err
		}
	}
	if c.more {
		c.gap -= int64(len(part)) - at
	}
	return nil
}

// corrector returns the corrector of words and operands. The corrector adds a value of the patch to each prediction for
// which the patch has one.
func (c *changes) corrector() corrector { return corrector{right: &c.gap, correct: c.correct} }

func (c *changes) correct(_ int, predicted uint32) (uint32, error) {
	var wrong [operandSize]byte
	if err := c.values.full(wrong[:]); err != nil {
		return 0, err
	}
	return predicted + binary.LittleEndian.Uint32(wrong[:]), c.next()
}
