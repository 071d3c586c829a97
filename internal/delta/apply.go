package delta

import (
	"context"
	"errors"
	"io"
)

// Apply writes the new file that patch makes of the old one.
func Apply(ctx context.Context, old io.ReaderAt, oldSize int64, patch io.Reader, w io.Writer) (Info, error) {
	return Info{}, errors.ErrUnsupported
}
