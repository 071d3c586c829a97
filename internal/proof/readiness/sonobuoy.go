package readiness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// sonobuoyDone is the file that ends a plugin of Sonobuoy. It has the path of the results.
const sonobuoyDone = "done"

// WriteSonobuoy writes the report as JUnit XML into the folder of a Sonobuoy plugin with the result format "junit", and
// then the file that ends the plugin. Sonobuoy takes the plugin as passed if no test has a failure or an error
// (pkg/client/results/junit.go), so a run that proved nothing gets a test with an error.
func (r Report) WriteSonobuoy(folder string) error {
	folder, err := filepath.Abs(folder) // absolute, since the worker has another working folder
	if err != nil {
		return fmt.Errorf("write the results for Sonobuoy: %w", err)
	}
	if why := r.failure(); why != nil {
		r.Cases = append(r.Cases[:len(r.Cases):len(r.Cases)], CaseResult{ID: "swdt-readiness", Result: NotRun, Message: why.Error()})
	}
	var results bytes.Buffer
	if err := r.WriteJUnit(&results); err != nil {
		return fmt.Errorf("write the results for Sonobuoy: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	path := filepath.Join(folder, JUnitName)
	if err := share(path, results.Bytes()); err != nil {
		return err
	}
	return share(filepath.Join(folder, sonobuoyDone), []byte(path))
}

// share writes a whole file at once, which other users can read: Sonobuoy's worker is another container.
func share(path string, content []byte) error {
	unfinished := path + ".tmp"
	if err := os.WriteFile(unfinished, content, 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
