// Package delta makes and applies binary patches: the parts of a rebuilt
// executable that an older build of it lacks.
//
// Relinking moves nearly every function by a few bytes, so two builds that
// differ in one line share almost no block at equal offsets, and yet almost
// every byte. Diff therefore walks the new file along a displacement into the
// old one, changes the displacement when another fits better (match.go), and
// stores the differences along it as sparse pairs of gap and value (sparse.go).
// That is Fast. Small continues from there: in x86-64 code it finds the
// operands that hold addresses, and predicts their new values from the moves of
// all blocks (predict.go).
//
// Apply is the part that runs on the node. It trusts nothing: every decision of
// the encoder is in the patch, every number in a patch is checked, memory is
// limited by the sizes that the header declares, and the result is valid only
// if its SHA-256 is the header's. Files of the applying part import no
// compressor.
//
// The format is described in docs/patch-format.md.
package delta

import "fmt"

// Variant is how a patch was made, and therefore how it is applied.
type Variant uint8

const (
	// Whole carries the new file, compressed. Diff falls back to it when the
	// old file does not help; callers cannot request it.
	Whole Variant = iota
	// Fast is the anchored matcher with sparse differences; it takes the least
	// time.
	Fast
	// Small adds the prediction of addresses in x86-64 code: fewer bytes for
	// about twice the time. If either file has no such code, it equals Fast.
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
	What string // what is wrong
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
