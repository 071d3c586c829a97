// Command language counts phrases that make readers read a sentence twice, and fails if
// a phrase occurs more often than accepted.txt allows.
//
//	git ls-files | language [-list [PATTERN…]] [-write]
//
// scripts/language.sh runs language over the whole tree. language reads the names of files from
// stdin, and searches comments and strings of Go code, comments of protobuf files, shell scripts
// and Makefiles, and the text of Markdown documents. patterns.txt lists the phrases, each with the
// form to write instead. The accepted numbers may only fall: if there are fewer phrases than
// accepted, the check also fails, until -write has lowered the numbers.
//
// main.go compares, patterns.go reads the patterns and applies them, and
// passages.go finds the text.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	var o options
	flag.StringVar(&o.folder, "folder", "tools/language", "the folder of patterns.txt and accepted.txt")
	flag.BoolVar(&o.list, "list", false, "print what is found, of the named patterns or of all, and do not compare")
	flag.BoolVar(&o.write, "write", false, "lower the accepted numbers to those found")
	flag.Parse()
	o.names = flag.Args()
	if err := run(os.Stdin, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "language:", err)
		os.Exit(1)
	}
}

type options struct {
	folder      string
	list, write bool
	names       []string // of the patterns to list; none: all
}

func run(names io.Reader, out io.Writer, o options) error {
	patterns, err := readPatterns(filepath.Join(o.folder, "patterns.txt"))
	if err != nil {
		return err
	}
	found, err := findInFiles(names, patterns)
	if err != nil {
		return err
	}
	if o.list {
		for _, p := range patterns {
			if len(o.names) == 0 || slices.Contains(o.names, p.name) {
				printFindings(out, p, found[p.name])
			}
		}
		return nil
	}
	file := filepath.Join(o.folder, "accepted.txt")
	accepted, err := readAccepted(file)
	if err != nil {
		return err
	}
	risen, fallen := compare(out, patterns, found, accepted)
	switch {
	case risen > 0:
		return fmt.Errorf("%d patterns occur more often than accepted: write the proposed forms, "+
			"or add an exception for a good use of a phrase to %s", risen, filepath.Join(o.folder, "patterns.txt"))
	case fallen > 0 && o.write:
		return writeAccepted(file, patterns, found)
	case fallen > 0:
		return errors.New("fewer phrases occur than accepted: lower the numbers with scripts/language.sh -write")
	}
	return nil
}

// compare prints the patterns whose numbers differ from the accepted ones. It returns the numbers of
// patterns that occur more often and less often than accepted.
func compare(out io.Writer, patterns []pattern, found map[string][]finding, accepted map[string]int) (
	risen, fallen int) {
	for _, p := range patterns {
		n, limit := len(found[p.name]), accepted[p.name]
		switch {
		case n > limit:
			risen++
			printFindings(out, p, found[p.name])
			fmt.Fprintf(out, "%s: %d, accepted %d\n", p.name, n, limit)
		case n < limit:
			fallen++
			fmt.Fprintf(out, "%s: %d, accepted %d\n", p.name, n, limit)
		}
	}
	return risen, fallen
}

func printFindings(out io.Writer, p pattern, found []finding) {
	for _, f := range found {
		fmt.Fprintf(out, "%s:%d: %q: write %s\n", f.file, f.line, f.phrase, p.write)
	}
}

// finding is one place where a pattern matches.
type finding struct {
	file   string
	line   int
	phrase string
}

// findInFiles returns the findings in the named files, by the patterns' names.
func findInFiles(names io.Reader, patterns []pattern) (map[string][]finding, error) {
	found := map[string][]finding{}
	lines := bufio.NewScanner(names)
	for lines.Scan() {
		passages, err := readPassages(lines.Text())
		if errors.Is(err, os.ErrNotExist) {
			continue // git lists files that are removed but not committed
		}
		if err != nil {
			return nil, err
		}
		for _, p := range patterns {
			for _, text := range passages {
				found[p.name] = append(found[p.name], p.find(lines.Text(), text)...)
			}
		}
	}
	return found, lines.Err()
}

// readAccepted returns the accepted numbers by the patterns' names. A pattern that
// the file lacks may not occur.
func readAccepted(path string) (map[string]int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	accepted := map[string]int{}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		number, name, _ := strings.Cut(line, " ")
		if accepted[name], err = strconv.Atoi(number); err != nil {
			return nil, fmt.Errorf("%s:%d: read the number: %w", path, i+1, err)
		}
	}
	return accepted, nil
}

func writeAccepted(path string, patterns []pattern, found map[string][]finding) error {
	var text strings.Builder
	text.WriteString("# How often each pattern of patterns.txt may occur. Written by -write; it only falls.\n")
	for _, p := range patterns {
		fmt.Fprintf(&text, "%d %s\n", len(found[p.name]), p.name)
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}
