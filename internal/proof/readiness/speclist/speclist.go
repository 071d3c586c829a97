// Package speclist reads and writes recorded lists of the specs of e2e.test, one for each Kubernetes
// version. With these lists, the tests of package readiness check its cases.
//
//   - speclist.go: the format of a recorded list
//   - record.go: the specs that a program e2e.test has
package speclist

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/proof/readiness"
)

const (
	// Extension ends the name of a file with a recorded list; the name begins with the version.
	Extension = ".txt.zst"
	// maxText bounds an uncompressed list, in bytes. The list of v1.36.3 has 2 MB.
	maxText = 16 << 20
	heading = "specs of e2e.test "
)

// List has the specs of one version of e2e.test, in the order of their names.
type List struct {
	Version string // the version of Kubernetes, such as v1.36.3
	Specs   []readiness.Spec
}

// Text returns the list as text: a line with the version, and a line for each spec, which has the name,
// a tab, and the labels with commas between them. The error names a spec that the format cannot hold.
func (l List) Text() ([]byte, error) {
	specs := slices.Clone(l.Specs)
	slices.SortFunc(specs, func(a, b readiness.Spec) int { return strings.Compare(a.Name, b.Name) })
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s%s\n", heading, l.Version)
	for _, spec := range specs {
		labels := strings.Join(spec.Labels, ",")
		if strings.ContainsAny(spec.Name+labels, "\t\n") || strings.Count(labels, ",") > max(0, len(spec.Labels)-1) {
			return nil, fmt.Errorf("spec %q with labels %q: a tab, a line feed or a comma cannot be recorded", spec.Name,
				spec.Labels)
		}
		fmt.Fprintf(&text, "%s\t%s\n", spec.Name, labels)
	}
	return text.Bytes(), nil
}

// Parse reads the text of a list.
func Parse(text []byte) (List, error) {
	first, rest, _ := strings.Cut(string(text), "\n")
	version, ok := strings.CutPrefix(first, heading)
	if !ok {
		return List{}, errors.New("the first line is not that of a recorded list of specs")
	}
	list := List{Version: version}
	number := 1
	for line := range strings.Lines(rest) {
		number++
		name, labels, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || name == "" {
			return List{}, fmt.Errorf("line %d has no name and labels", number)
		}
		spec := readiness.Spec{Name: name}
		if labels != "" {
			spec.Labels = strings.Split(labels, ",")
		}
		list.Specs = append(list.Specs, spec)
	}
	return list, nil
}

// ReadFile reads a recorded list.
func ReadFile(path string) (List, error) {
	text, err := readText(path)
	if err != nil {
		return List{}, err
	}
	list, err := Parse(text)
	if err != nil {
		return List{}, fmt.Errorf("read %s: %w", path, err)
	}
	return list, nil
}

func readText(path string) ([]byte, error) {
	packed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reader, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxText))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer reader.Close()
	text, err := reader.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return text, nil
}

// WriteFile records the list, and reports whether it has changed. If the file has the same list already,
// it stays as it is, since another version of the compression could write other bytes.
func (l List) WriteFile(path string) (changed bool, err error) {
	text, err := l.Text()
	if err != nil {
		return false, err
	}
	if old, err := readText(path); err == nil && bytes.Equal(old, text) {
		return false, nil
	}
	writer, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return false, err
	}
	defer writer.Close()
	if err := localfile.Replace(path, writer.EncodeAll(text, nil)); err != nil {
		return false, err
	}
	return true, os.Chmod(path, 0o644)
}
