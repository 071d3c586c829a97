package discfs

import (
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/ui"
)

// CutShortError reports an image that ends before its file system does, for example after a
// download that was interrupted.
type CutShortError struct {
	Have int64 // bytes of the image
	Want int64 // bytes that the image should have at least
}

func (e *CutShortError) Error() string {
	return fmt.Sprintf("the file is cut short: it has %s of at least %s (%d of %d bytes); download or copy it again",
		ui.Size(e.Have), ui.Size(e.Want), e.Have, e.Want)
}

// DamageError reports a structure of the image that breaks the rules of its format.
type DamageError struct {
	Offset  int64  // bytes from the start of the image
	Problem string // such as "the checksum of the file entry is wrong"
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("sector %d (byte %d): %s; the image is damaged: download or copy it again",
		e.Offset/SectorSize, e.Offset, e.Problem)
}

// EndsEarly reports whether err is a *CutShortError.
func EndsEarly(err error) bool {
	var short *CutShortError
	return errors.As(err, &short)
}

// Damage returns a *DamageError.
func Damage(offset int64, format string, args ...any) error {
	return &DamageError{Offset: max(offset, 0), Problem: fmt.Sprintf(format, args...)}
}

// UnsupportedError reports an image that follows a format which swdt does not read.
type UnsupportedError struct {
	What   string
	Remedy string
}

func (e *UnsupportedError) Error() string { return e.What + "; " + e.Remedy }

// FormatError reports that an image is not in the format that was tried.
type FormatError struct{ Format string }

func (e *FormatError) Error() string {
	return "the file is no " + e.Format + " image; name an .iso file"
}
