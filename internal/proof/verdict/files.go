package verdict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui/result"
)

// The files of a report in its folder.
const (
	ResultsName = "results.json"
	JUnitName   = "junit.xml"
	PageName    = "report.html"
)

// maxResults bounds the size of a results.json that is read, in bytes.
const maxResults = 256 << 20

// Save writes the files of the report into its folder. A reader finds whole files only.
func (r Report) Save() error {
	for name, write := range map[string]func(io.Writer) error{
		ResultsName: func(w io.Writer) error { return result.Writer{Format: result.JSON}.Write(w, r) },
		JUnitName:   r.WriteJUnit,
		PageName:    r.WritePage,
	} {
		if err := localfile.ReplaceBy(filepath.Join(r.Folder, name), write); err != nil {
			return fmt.Errorf("write %s: %w", filepath.Join(r.Folder, name), err)
		}
	}
	return nil
}

// Load reads the results of an earlier run. path is the folder or its results.json, or a JUnit file of Ginkgo.
func Load(path string) (Report, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, ResultsName)
	}
	if filepath.Ext(path) == ".xml" {
		return loadJUnit(path)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, fmt.Errorf("there is no %s; name the folder of the results of `swdt e2e`, its %s, or a JUnit file", path,
			ResultsName)
	}
	if err != nil {
		return Report{}, fmt.Errorf("read the results: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxResults+1))
	switch {
	case err != nil:
		return Report{}, fmt.Errorf("read %s: %w", path, err)
	case len(text) > maxResults:
		return Report{}, fmt.Errorf("%s has more than %d bytes; are these the results of `swdt e2e`?", path, maxResults)
	}
	var r Report
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&r); err != nil {
		return Report{}, fmt.Errorf("read %s: %w; are these the results of `swdt e2e`?", path, err)
	}
	if r.Result == "" {
		return Report{}, fmt.Errorf("%s has no result; are these the results of `swdt e2e`?", path)
	}
	return r, nil
}
