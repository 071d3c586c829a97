package capture

import (
	"fmt"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// Stage creates a folder for fetched files beside the output file, since another disk may not have
// enough space. If there is no output file, or if no folder can be created beside it, Stage creates
// the folder in the folder for temporary files.
func Stage(file string) (*localfile.Staging, error) {
	if file != "" {
		if staging, err := localfile.Stage(filepath.Dir(file), "."+filepath.Base(file)); err == nil {
			return staging, nil
		}
	}
	staging, err := localfile.Scratch()
	if err != nil {
		return nil, fmt.Errorf("create a folder for the capture: %w", err)
	}
	return staging, nil
}
