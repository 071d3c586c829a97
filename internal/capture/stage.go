package capture

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// Stage makes a folder for what is fetched: beside the file that it becomes, since a
// disk that has room for the file need not be the one of $TMPDIR. It is in $TMPDIR if
// there is no such file, or no folder can be made beside it.
func Stage(file string) (*localfile.Staging, error) {
	if file != "" {
		if staging, err := localfile.Stage(filepath.Dir(file), "."+filepath.Base(file)); err == nil {
			return staging, nil
		}
	}
	staging, err := localfile.Stage(os.TempDir(), "swdt-capture")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the capture: %w", err)
	}
	return staging, nil
}
