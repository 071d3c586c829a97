// Command skips counts the tests of recorded runs, and fails if a test was skipped that
// should have run.
//
//	skips -expected FILE [-required THING] RECORD…
//
// A record is the output of `go test -json`. Each line of the file of expected
// skips is a regular expression, matched against PACKAGE.TEST as a whole, then
// a space and the reason; lines that begin with # are comments. If the reason begins with
// [THING], the test may be skipped only on a machine without that thing: with -required THING,
// skips fails unless a test that the expression matches has passed.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	expected := flag.String("expected", "", "the file of expected skips")
	required := flag.String("required", "", "the `thing` whose tests must have run")
	flag.Parse()
	if err := run(os.Stdout, *expected, *required, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "skips:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, expectedFile, required string, records []string) error {
	rules, err := readRules(expectedFile)
	if err != nil {
		return err
	}
	var total tally
	for _, record := range records {
		if err := total.addFile(record); err != nil {
			return err
		}
	}
	if required == "" {
		return total.report(out, rules)
	}
	isRequired := func(r rule) bool { return r.needs == required }
	must := slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return !isRequired(r) })
	err = total.report(out, slices.DeleteFunc(rules, isRequired))
	return errors.Join(err, total.ran(must, required))
}

// rule is one expected skip.
type rule struct {
	pattern *regexp.Regexp
	reason  string
	needs   string // the thing without which the tests may be skipped; "": they always may
}

func readRules(path string) ([]rule, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rules []rule
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, reason, _ := strings.Cut(line, " ")
		compiled, err := regexp.Compile("^(?:" + pattern + ")$")
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		if reason = strings.TrimSpace(reason); reason == "" {
			return nil, fmt.Errorf("%s:%d: %s has no reason; write one after a space", path, i+1, pattern)
		}
		needs := ""
		if tag, rest, found := strings.Cut(reason, "]"); found && strings.HasPrefix(tag, "[") {
			needs, reason = tag[1:], strings.TrimSpace(rest)
		}
		rules = append(rules, rule{compiled, reason, needs})
	}
	return rules, nil
}

// event is a line of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// tally counts the results of the tests of all records.
type tally struct {
	passed  []string // the names of the tests
	failed  int
	skipped []skip
}

type skip struct{ name, message string }

func (t *tally) addFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := t.add(file); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func (t *tally) add(record io.Reader) error {
	messages := map[string]string{} // the last line that a test printed
	lines := bufio.NewReader(record)
	for {
		line, readErr := lines.ReadBytes('\n')
		var e event
		// A line that is not an event comes from a build; gotestsum reports such lines.
		if json.Unmarshal(line, &e) == nil && e.Test != "" {
			t.count(e, messages)
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

func (t *tally) count(e event, messages map[string]string) {
	name := e.Package + "." + e.Test
	switch e.Action {
	case "output":
		if text := strings.TrimSpace(e.Output); text != "" && !strings.HasPrefix(text, "---") &&
			!strings.HasPrefix(text, "===") {
			messages[name] = text
		}
	case "pass":
		t.passed = append(t.passed, name)
	case "fail":
		t.failed++
	case "skip":
		t.skipped = append(t.skipped, skip{name, messages[name]})
	}
}

// report prints the sums. The error names every skipped test that no rule expects.
func (t *tally) report(out io.Writer, rules []rule) error {
	var unexpected []string
	for _, s := range t.skipped {
		if reason, ok := expectedSkip(rules, s.name); ok {
			fmt.Fprintf(out, "skipped as expected: %s (%s)\n", s.name, reason)
		} else {
			unexpected = append(unexpected, fmt.Sprintf("  %s: %s", s.name, s.message))
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", len(t.passed), t.failed, len(t.skipped))
	switch {
	case len(unexpected) > 0:
		return fmt.Errorf("%d tests were skipped that should have run:\n%s\n"+
			"install what they need, or add them with a reason to the file of expected skips",
			len(unexpected), strings.Join(unexpected, "\n"))
	case len(t.passed) == 0:
		return fmt.Errorf("no test ran")
	}
	return nil
}

// ran returns an error for each rule whose tests had to run, and of which none has passed.
func (t *tally) ran(must []rule, required string) error {
	errs := []error{}
	for _, r := range must {
		if !slices.ContainsFunc(t.passed, r.pattern.MatchString) {
			errs = append(errs, fmt.Errorf("%s is required, and no test passed that %s matches", required, r.pattern))
		}
	}
	if len(must) == 0 {
		errs = append(errs, fmt.Errorf("%s is required, and no expected skip names it", required))
	}
	return errors.Join(errs...)
}

func expectedSkip(rules []rule, name string) (reason string, ok bool) {
	for _, r := range rules {
		if r.pattern.MatchString(name) {
			return r.reason, true
		}
	}
	return "", false
}
