// Package delta makes and applies binary patches. A patch contains the parts of a rebuilt
// executable that an older build of the same executable lacks.
//
// Relinking moves nearly every function by a few bytes. So two builds that differ in one line of
// source have almost no bytes in common at equal offsets, although almost every byte of one build
// also occurs in the other, at another offset. Diff therefore walks the new file along a
// displacement, which is the distance to the matching bytes of the old file. It changes the
// displacement if another one fits better (match.go), and stores the differences as sparse pairs of
// gap and value (sparse.go). This is the variant Fast. The variant Small does more: in x86-64 code
// it finds the operands that hold addresses, and predicts their new values from the moves of all
// blocks (predict.go).
//
// Apply is the part that runs on the node. It trusts nothing: every decision of
// the encoder is in the patch, every number in a patch is checked, memory is
// limited by the sizes that the header declares, and the result is valid only
// if it has the SHA-256 in the header. The files of the applying part do not
// call a compressor.
//
// The format is described in docs/patch-format.md.
package delta

import "fmt"

// Variant is the way in which a patch was made, and therefore the way in which
// it is applied.
type Variant uint8

const (
	// Whole carries the new file, compressed. Diff falls back to it when the
	// old file does not help; callers cannot request it.
	Whole Variant = iota
	// Fast matches blocks and stores sparse differences; it takes the least
	// time.
	Fast
	// Small also predicts addresses in x86-64 code. It needs fewer bytes and
	// about twice the time. If either file has no such code, Small equals Fast.
	Small
)

func (v Variant) String() string {
	switch v {
	case Whole:
		return "whole"
	case Fast:
		return "fast"
	case Small:
		return "small"
	}
	return fmt.Sprintf("variant %d", uint8(v))
}

// Info describes a patch that was made or applied.
type Info struct {
	OldSize, NewSize     int64
	PatchSize            int64 // bytes of the patch
	OldSHA256, NewSHA256 [32]byte
	Variant              Variant
}

// CorruptError reports that a patch is damaged, or was not made for this old
// file.
type CorruptError struct {
	What string // the damaged part or the contradiction
	Err  error  // the cause, if known
}

func (e *CorruptError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("apply the patch: %s: %v; make the patch again, from the file it is applied to", e.What,
			e.Err)
	}
	return fmt.Sprintf("apply the patch: %s; make the patch again, from the file it is applied to", e.What)
}

func (e *CorruptError) Unwrap() error { return e.Err }

func corrupt(format string, args ...any) error {
	return &CorruptError{What: fmt.Sprintf(format, args...)}
}
