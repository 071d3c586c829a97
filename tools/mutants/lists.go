package main

import (
	"fmt"
	"go/ast"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// exclusion is a line of exclude.txt.
type exclusion struct {
	pattern *regexp.Regexp
	reason  string
}

// readExclusions reads lines of the form PATTERN # REASON.
func readExclusions(file string) (all []exclusion, err error) {
	err = eachLine(file, func(line string) error {
		pattern, reason, found := strings.Cut(line, " # ")
		if reason = strings.TrimSpace(reason); !found || reason == "" {
			return fmt.Errorf("%s has no reason; write one after #", line)
		}
		compiled, err := regexp.Compile(strings.TrimSpace(pattern))
		all = append(all, exclusion{compiled, reason})
		return err
	})
	return all, err
}

// eachLine calls f with the lines of a file that are neither empty nor comments.
func eachLine(file string, f func(line string) error) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := f(line); err != nil {
			return fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
	}
	return nil
}

// exclude returns the mutants that no pattern excludes, and the numbers of the others by reason.
func exclude(all []*mutant, exclusions []exclusion) (kept []*mutant, excluded map[string]int) {
	excluded = map[string]int{}
	for _, m := range all {
		reason := m.impossible
		for _, e := range exclusions {
			if reason == "" && e.pattern.MatchString(m.name()) {
				reason = e.reason
			}
		}
		if reason != "" {
			excluded[reason]++
		} else {
			kept = append(kept, m)
		}
	}
	return kept, excluded
}

// sample chooses up to n mutants, and numbers them from 1.
func sample(all []*mutant, seed uint64, n int) []*mutant {
	random := rand.New(rand.NewPCG(seed, 0))
	chosen := random.Perm(len(all))[:min(n, len(all))]
	slices.Sort(chosen)
	var sampled []*mutant
	for i, at := range chosen {
		all[at].id = i + 1
		sampled = append(sampled, all[at])
	}
	return sampled
}

// fixed is an entry of always.txt: a text in a function, and the text that replaces it.
type fixed struct{ file, function, was, now string }

func (f fixed) folder() string { return path.Dir(f.file) }

// readAlways reads entries of three lines: FILE FUNCTION, was TEXT, now TEXT.
func readAlways(file string) (all []fixed, err error) {
	err = eachLine(file, func(line string) error {
		word, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		text = strings.TrimSpace(text)
		indented := strings.HasPrefix(line, " ")
		switch {
		case !indented && text != "":
			all = append(all, fixed{file: word, function: text})
		case indented && len(all) > 0 && word == "was":
			all[len(all)-1].was = text
		case indented && len(all) > 0 && word == "now":
			all[len(all)-1].now = text
		default:
			return fmt.Errorf("%q is not of the form FILE FUNCTION, was TEXT or now TEXT", line)
		}
		return nil
	})
	for _, f := range all {
		if f.was == "" || f.now == "" {
			err = fmt.Errorf("%s: the entry of %s in %s is not complete", file, f.function, f.file)
		}
	}
	return all, err
}

// fixed finds an entry of always.txt in the source. The text must occur in the function exactly once. The function
// "package" stands for the whole file.
func (s *source) fixed(f fixed) (*mutant, error) {
	file := s.file(f.file)
	if file == nil {
		return nil, fmt.Errorf("%s is not a file of the package", f.file)
	}
	from, to := 0, len(file.text)
	if f.function != wholeFile {
		at := slices.IndexFunc(file.tree.Decls, func(d ast.Decl) bool { return functionName(d) == f.function })
		if at < 0 {
			return nil, fmt.Errorf("%s has no function %s", f.file, f.function)
		}
		from, to = s.offset(file.tree.Decls[at].Pos()), s.offset(file.tree.Decls[at].End())
	}
	function := string(file.text[from:to])
	if n := strings.Count(function, f.was); n != 1 {
		return nil, fmt.Errorf("%s of %s has %d times %q, not once: correct always.txt", f.function, f.file, n, f.was)
	}
	at := from + strings.Index(function, f.was)
	return &mutant{File: f.file, Line: 1 + strings.Count(string(file.text[:at]), "\n"), Function: f.function,
		Change: f.was + " → " + f.now, edits: []edit{{from: at, to: at + len(f.was), replace: true, before: f.now}}}, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
