package scale

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui/result"
)

// The files of a report in its folder.
const (
	ResultsName = "results.json"
	PageName    = "report.html"
)

// maxResults bounds the size of a results.json that is read, in bytes.
const maxResults = 64 << 20

// Save writes the files of the report into its folder. A reader finds whole files only.
func (r Report) Save() error {
	for name, write := range map[string]func(io.Writer) error{
		ResultsName: func(w io.Writer) error { return result.Writer{Format: result.JSON}.Write(w, r) },
		PageName:    r.WritePage,
	} {
		if err := localfile.ReplaceBy(filepath.Join(r.Folder, name), write); err != nil {
			return fmt.Errorf("write %s: %w", filepath.Join(r.Folder, name), err)
		}
	}
	return nil
}

// LoadReport reads the results of an earlier run. path is the folder or its results.json.
func LoadReport(path string) (Report, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, ResultsName)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, fmt.Errorf("there is no %s; name the folder of the results of `swdt scale run`, or its %s", path,
			ResultsName)
	}
	if err != nil {
		return Report{}, fmt.Errorf("read the results: %w", err)
	}
	defer file.Close()
	return readReport(path, file)
}

// readReport reads the JSON of a report. The parameter name names the source in errors.
func readReport(name string, from io.Reader) (r Report, err error) {
	text, err := io.ReadAll(io.LimitReader(from, maxResults+1))
	switch {
	case err != nil:
		return Report{}, fmt.Errorf("read %s: %w", name, err)
	case len(text) > maxResults:
		return Report{}, fmt.Errorf("%s has more than %d bytes; are these the results of `swdt scale run`?", name, maxResults)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return Report{}, fmt.Errorf("read %s: %w; are these the results of `swdt scale run`?", name, err)
	}
	if r.Result == "" || r.Load.Services == 0 {
		return Report{}, fmt.Errorf("%s has no result; are these the results of `swdt scale run`?", name)
	}
	return r.bounded(), nil
}

// bounded returns the report without numbers that no run measures, for example a page's coordinates
// could not be computed from them.
func (r Report) bounded() Report {
	number := func(v *float64) {
		if math.IsNaN(*v) || *v < 0 || *v > 1e12 {
			*v = 0
		}
	}
	for i := range r.Nodes {
		for j := range r.Nodes[i].Samples {
			s := &r.Nodes[i].Samples[j]
			for _, v := range []*float64{&s.Seconds, &s.PendingServices, &s.PendingEndpoints, &s.ProxyCores, &s.HNSCores,
				&s.AgentCores} {
				number(v)
			}
			s.Written, s.Programmed = max(s.Written, 0), max(s.Programmed, 0)
		}
	}
	return r
}
