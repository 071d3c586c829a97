package suite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// Spec is one test of the program.
type Spec struct {
	Name   string   `json:"name"` // with the texts of Ginkgo's containers, as in --list-tests
	Labels []string `json:"labels"`
	File   string   `json:"file"` // the source file, below test/e2e, such as windows/density.go
	Line   int      `json:"line"`
}

// Sig returns the group that owns the spec, such as sig-windows. The name of the spec begins with its
// group; if it does not, Sig returns "".
func (s Spec) Sig() string {
	if rest, ok := strings.CutPrefix(s.Name, "[sig-"); ok {
		if sig, _, ok := strings.Cut(rest, "]"); ok {
			return "sig-" + sig
		}
	}
	return ""
}

// Listing are the specs that a selection matches.
type Listing struct {
	Specs []Spec // in the order of their names
	Total int    // the number of all specs of the program
}

// List returns the specs that match, by a dry run of the program, which contacts no cluster. An empty
// list is not an error.
func (b Binary) List(ctx context.Context, s Selection) (Listing, error) {
	if err := s.Check(); err != nil {
		return Listing{}, err
	}
	scratch, err := localfile.Scratch()
	if err != nil {
		return Listing{}, fmt.Errorf("list the specs: %w", err)
	}
	defer scratch.Remove()
	folder := scratch.Path
	report := filepath.Join(folder, reportName)
	args := append([]string{
		"--ginkgo.dry-run", "--ginkgo.no-color", "--ginkgo.json-report=" + report, "--provider=skeleton",
		"--repo-root=" + folder, "--kubeconfig=" + filepath.Join(folder, "no-kubeconfig"),
	}, s.flags()...)
	_, runErr := ask(ctx, b.Path, listLimit, args...)
	read, err := readReportFile(report)
	switch {
	case ctx.Err() != nil:
		return Listing{}, context.Cause(ctx)
	case err == nil: // Ginkgo may exit with 1 if nothing matches
		return read.listing(), nil
	case errors.Is(err, fs.ErrNotExist) && runErr != nil:
		return Listing{}, &BinaryError{Path: b.Path, What: "listed no specs", Err: runErr,
			Remedy: "correct the filters"}
	}
	return Listing{}, &BinaryError{Path: b.Path, What: "listed no specs", Err: errors.Join(err, runErr),
		Remedy: "is it Kubernetes' e2e.test, of version 1.25 or newer?"}
}

// listing returns the specs that a dry run would run.
func (r Report) listing() Listing {
	l := Listing{Total: r.Total, Specs: []Spec{}}
	for _, result := range r.Results {
		if result.Outcome == Passed {
			l.Specs = append(l.Specs, result.Spec)
		}
	}
	slices.SortStableFunc(l.Specs, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
	return l
}
