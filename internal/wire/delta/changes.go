package delta

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// changes reads sparse corrections from a patch, in the order of the new file's blocks. The method
// apply adds corrections to bytes; the method correct adds them to predicted words and operands.
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
		c.gap, c.more = math.MaxInt64, false
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

// correct implements corrector for words and operands: if the patch has a value for this item,
// correct returns the sum of the prediction and that value. If not, it returns the prediction.
func (c *changes) correct(_ int, predicted uint32) (uint32, error) {
	if c.gap > 0 {
		if c.more {
			c.gap--
		}
		return predicted, nil
	}
	var wrong [operandSize]byte
	if err := c.values.full(wrong[:]); err != nil {
		return 0, err
	}
	return predicted + binary.LittleEndian.Uint32(wrong[:]), c.next()
}
