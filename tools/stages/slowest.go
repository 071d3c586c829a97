package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// slowest returns lines with the tests that took longest, of the records of `go test -json` in a folder.
// The seconds are those of the clock, and include the time in which a test waited for others.
func slowest(folder string, n int) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return "", err
	}
	type timed struct {
		name    string
		elapsed float64
	}
	var all []timed
	for _, path := range files {
		if err := eachEvent(path, func(e event) {
			if e.Test != "" && !strings.Contains(e.Test, "/") && (e.Action == "pass" || e.Action == "fail") {
				all = append(all, timed{e.Package + "." + e.Test, e.Elapsed})
			}
		}); err != nil {
			return "", err
		}
	}
	slices.SortFunc(all, func(a, b timed) int { return cmp.Or(cmp.Compare(b.elapsed, a.elapsed), cmp.Compare(a.name, b.name)) })
	var text strings.Builder
	fmt.Fprintf(&text, "\nThe slowest of %d tests, in seconds:\n", len(all))
	for _, t := range all[:min(n, len(all))] {
		fmt.Fprintf(&text, "%8.2f  %s\n", t.elapsed, strings.TrimPrefix(t.name, "github.com/swdt-dev/swdt/"))
	}
	return text.String(), nil
}

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test string
	Elapsed               float64 // seconds
}

// eachEvent calls f for each event of a record. Lines that are no events come from builds.
func eachEvent(path string, f func(event)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			f(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
}
