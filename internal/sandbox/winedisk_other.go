//go:build !unix

package sandbox

import "github.com/swdt-dev/swdt/internal/wire/fault"

// FreeBytes is not needed, since Wine runs on Unix only.
func (d prefixDisk) FreeBytes(string) (int64, error) { return 0, fault.ErrNotSupported }
