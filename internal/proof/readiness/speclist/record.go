package speclist

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/proof/readiness"
)

// report has the fields of Ginkgo's JSON report that a list needs.
type report struct {
	SpecReports []struct {
		ContainerHierarchyTexts  []string
		ContainerHierarchyLabels [][]string
		LeafNodeType             string
		LeafNodeText             string
		LeafNodeLabels           []string
	}
}

// Record returns the specs of the program e2e.test at path, by a dry run, which contacts no cluster. It
// compares the names with those that the program itself lists.
func Record(ctx context.Context, path string) (List, error) {
	version, err := run(ctx, path, "--version")
	if err != nil {
		return List{}, err
	}
	list := List{Version: string(regexp.MustCompile(`v\d+\.\d+\.\d+[-+.0-9A-Za-z]*`).Find(version))}
	if list.Version == "" {
		return List{}, fmt.Errorf("%s --version printed %q, which has no version", path, version)
	}
	scratch, err := localfile.Scratch()
	if err != nil {
		return List{}, err
	}
	defer scratch.Remove()
	folder := scratch.Path
	file := filepath.Join(folder, "report.json")
	if _, err := run(ctx, path, "--ginkgo.dry-run", "--ginkgo.json-report="+file, "--provider=skeleton",
		"--repo-root="+folder, "--kubeconfig="+filepath.Join(folder, "none")); err != nil {
		return List{}, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return List{}, fmt.Errorf("read the report of %s: %w", path, err)
	}
	if list.Specs, err = specs(text); err != nil {
		return List{}, fmt.Errorf("read the report of %s: %w", path, err)
	}
	listed, err := run(ctx, path, "--list-tests")
	if err != nil {
		return List{}, err
	}
	return list, list.compare(listed)
}

// specs returns the specs of a report, also those that a dry run leaves out.
func specs(text []byte) (all []readiness.Spec, err error) {
	var suites []report
	if err := json.Unmarshal(text, &suites); err != nil {
		return nil, err
	}
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			if s.LeafNodeType != "It" {
				continue // code that runs before or after the suite
			}
			texts := append(s.ContainerHierarchyTexts, s.LeafNodeText)
			texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
			spec := readiness.Spec{Name: strings.Join(texts, " ")}
			for _, label := range append(slices.Concat(s.ContainerHierarchyLabels...), s.LeafNodeLabels...) {
				if !slices.Contains(spec.Labels, label) {
					spec.Labels = append(spec.Labels, label)
				}
			}
			all = append(all, spec)
		}
	}
	return all, nil
}

// compare returns an error unless the output of --list-tests has the names of the list.
func (l List) compare(output []byte) error {
	var names, listed []string
	for _, spec := range l.Specs {
		names = append(names, spec.Name)
	}
	for line := range strings.Lines(string(output)) {
		// A line is "    FILE:LINE: NAME".
		if _, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); ok && strings.HasPrefix(line, "    ") {
			listed = append(listed, name)
		}
	}
	slices.Sort(names)
	slices.Sort(listed)
	if !slices.Equal(names, listed) {
		return fmt.Errorf("the report of e2e.test %s has %d specs, but --list-tests prints %d, or others", l.Version,
			len(names), len(listed))
	}
	return nil
}

// run runs the program and returns its stdout.
func run(ctx context.Context, path string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s %s: %w: %s", path, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
