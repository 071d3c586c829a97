package media

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
)

// Sum is the hash of an ISO.
type Sum struct {
	SHA256 string `json:"sha256"` // in lower case
	// Known is the name of the evaluation medium that has this hash; "" if swdt does not know the
	// hash. swdt knows neither media of volume licences nor refreshed media, which may be just as
	// good.
	Known string `json:"known"`
}

// knownMedium is an evaluation medium that Microsoft publishes.
type knownMedium struct{ name, sha256 string }

// knownMedia returns evaluation media in English, as of August 2026. Two public projects agree on
// each hash, except for the hash of Windows Server 2019, which comes from only one project.
func knownMedia() []knownMedium {
	return []knownMedium{
		{"Windows Server 2025 evaluation, en-us, 26100.32230",
			"7b052573ba7894c9924e3e87ba732ccd354d18cb75a883efa9b900ea125bfd51"},
		{"Windows Server 2022 evaluation, en-us, 20348.587",
			"3e4fa6d8507b554856fc9ca6079cc402df11a8b79344871669f0251535255325"},
		{"Windows Server 2019 evaluation, en-us, 17763.737",
			"549bca46c055157291be6c22a3aaaed8330e78ef4382c99ee82c896426a1cee1"},
		{"Windows 11 Enterprise LTSC evaluation, en-us, 26100.1742",
			"67cec5865eaa037a72ddc633a717a10a2bed50778862267223ddb9c60ef5da68"},
	}
}

// Known returns the name of the evaluation medium with this SHA-256, in lower case; "" if swdt
// knows none.
func Known(sha256 string) string {
	for _, medium := range knownMedia() {
		if medium.sha256 == sha256 {
			return medium.name
		}
	}
	return ""
}

// Hash computes the SHA-256 of an ISO of size bytes, and looks it up among the media that swdt
// knows. It adds the bytes read to progress, which the caller ends. If ctx ends, the error is the
// cause of ctx.
func Hash(ctx context.Context, r io.ReaderAt, size int64, progress ui.Progress) (Sum, error) {
	hash, buffer := sha256.New(), make([]byte, 1<<20)
	for at := int64(0); at < size; {
		if ctx.Err() != nil {
			return Sum{}, fmt.Errorf("hash the ISO: %w", context.Cause(ctx))
		}
		wanted := min(size-at, int64(len(buffer)))
		n, err := r.ReadAt(buffer[:wanted], at)
		_, _ = hash.Write(buffer[:n]) // a hash returns no error
		at += int64(n)
		progress.Add(int64(n))
		switch {
		case int64(n) == wanted:
		case err == nil || errors.Is(err, io.EOF): // the file became shorter meanwhile
			return Sum{}, fmt.Errorf("hash the ISO: %w", &discfs.CutShortError{Have: at, Want: size})
		default:
			return Sum{}, fmt.Errorf("hash the ISO at byte %d: %w", at, err)
		}
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	return Sum{SHA256: sum, Known: Known(sum)}, nil
}
