// Package delta makes and applies binary patches: what a rebuilt executable needs
// of itself when an older build of it is already there.
//
// Relinking moves nearly every function by a few bytes, so two builds that differ
// in one line share almost no block at equal offsets, and yet almost every byte.
// Diff therefore walks the new file along a displacement into the old one, changes
// the displacement where another fits better (match.go), and stores what differs
// along it as sparse pairs of gap and value (sparse.go). That is Fast. Small goes
// on from there: in x86-64 code it finds the operands that hold addresses, and
// predicts from where everything moved what they became (predict.go).
//
// Apply is the half that runs on the node. It trusts nothing: every decision of
// the encoder is in the patch, every number in a patch is checked, memory is
// bounded by what the header declares, and the result counts only if its SHA-256
// is the header's. Files of the applying half import no compressor.
//
// The format is described in docs/patch-format.md.
package delta

import "fmt"

// Variant says how a patch was made, and so how it is applied.
type Variant uint8

const (
	// Whole carries the new file, compressed. Diff falls back to it when the old
	// file is of no help; it cannot be asked for.
	Whole Variant = iota
	// Fast is the anchored matcher with sparse differences: the least time.
	Fast
	// Small adds the prediction of addresses in x86-64 code: fewer bytes for about
	// twice the time. Without such code in both files it is Fast.
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

// CorruptError says that a patch is damaged, or was not made for this old file.
type CorruptError struct {
	What string // what was found wrong
	Err  error  // the cause, where there is one
}

func (e *CorruptError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("applying a patch: %s: %v; make the patch again, from the file it is applied to", e.What, e.Err)
	}
	return fmt.Sprintf("applying a patch: %s; make the patch again, from the file it is applied to", e.What)
}

func (e *CorruptError) Unwrap() error { return e.Err }

func corrupt(format string, args ...any) error {
	return &CorruptError{What: fmt.Sprintf(format, args...)}
}
