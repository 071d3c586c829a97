package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// stage is a line of the table.
type stage struct {
	name   string
	tier   string // the command that runs it: verify, test, kind or nightly
	budget int    // seconds of processor time with empty caches
	record when
	shows  string
}

// when says which record of an earlier run makes another run needless.
type when string

const (
	always   when = "always" // none: the stage runs each time
	byCommit when = "commit" // a passed run of the same commit
	byInputs when = "inputs" // a passed run with the same files of scripts/inputs/STAGE.txt
)

// readTable reads the table. Its columns are separated by vertical bars.
func readTable(path string) ([]stage, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var table []stage
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, err := parseStage(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		if slices.ContainsFunc(table, func(other stage) bool { return other.name == s.name }) {
			return nil, fmt.Errorf("%s:%d: two stages are called %s", path, i+1, s.name)
		}
		table = append(table, s)
	}
	return table, nil
}

func parseStage(line string) (stage, error) {
	columns := strings.Split(line, "|")
	if len(columns) != 5 {
		return stage{}, fmt.Errorf("%d columns instead of 5: NAME | TIER | BUDGET | RECORD | WHAT IT SHOWS", len(columns))
	}
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	budget, err := strconv.Atoi(columns[2])
	if err != nil || budget <= 0 {
		return stage{}, fmt.Errorf("the budget %q is no number of seconds", columns[2])
	}
	s := stage{columns[0], columns[1], budget, when(columns[3]), columns[4]}
	if !slices.Contains([]when{always, byCommit, byInputs}, s.record) {
		return stage{}, fmt.Errorf("the record %q is none of always, commit and inputs", s.record)
	}
	return s, nil
}

// stages returns the stages of a tier, or those of them that are named.
func (h *house) stages(tier string, names []string) ([]stage, error) {
	all := slices.DeleteFunc(slices.Clone(h.table), func(s stage) bool { return s.tier != tier })
	if len(all) == 0 {
		return nil, fmt.Errorf("scripts/stages.txt has no tier %q", tier)
	}
	if len(names) == 0 {
		return all, nil
	}
	var chosen []stage
	for _, name := range names {
		i := slices.IndexFunc(all, func(s stage) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("the tier %s has no stage %q", tier, name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// list prints the table as CONTRIBUTING.md has it.
func (h *house) list(out io.Writer) error {
	var text bytes.Buffer
	text.WriteString("| command | stage | what it shows | budget, CPU-s |\n|---|---|---|---|\n")
	for _, s := range h.table {
		fmt.Fprintf(&text, "| `make %s` | %s | %s | %d |\n", s.tier, s.name, s.shows, s.budget)
	}
	_, err := out.Write(text.Bytes())
	return err
}
