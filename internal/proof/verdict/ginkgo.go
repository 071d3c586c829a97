package verdict

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/swdt-dev/swdt/internal/proof/suite"
)

// loadJUnit reads a JUnit file of Ginkgo as the report of one run. The file of an interrupted run counts as far as it goes.
func loadJUnit(path string) (Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return Report{}, fmt.Errorf("read the results: %w", err)
	}
	defer file.Close()
	run, err := suite.ReadJUnit(file, path)
	if err != nil {
		return Report{}, err
	}
	var failure error
	if len(run.Reasons) > 0 {
		failure = errors.New("the run did not end: " + strings.Join(run.Reasons, "; "))
	}
	r := Report{Folder: path, Total: run.Total, cut: run.Cut, missed: map[string]bool{}}.Judged([]suite.Report{run}, failure)
	for _, spec := range run.Unreached {
		r.missed[spec.Name] = true
	}
	return r, nil
}

// unreached reports whether the run ended before a spec that it lacks.
func (r Report) unreached(name string) bool { return r.cut || r.missed[name] }
