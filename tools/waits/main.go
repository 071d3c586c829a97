// Command waits finds tests whose verdict depends on the clock, and tests that wait in real time.
//
//	waits -accepted FILE FOLDER
//
// In all files *_test.go below the folder it looks for time.Sleep, for limits below 30 seconds (time.After,
// time.NewTimer, context.WithTimeout, context.WithDeadline and their variants with a cause), and for comparisons
// of time.Since. The functions that synctest.Test runs have a clock of their own, so waits skips them, and skips
// the functions that only they use. It knows functions by their names alone.
//
// Each line of the file of accepted places is FILE FUNCTION CALL REASON. waits prints every other place and fails
// if there is one, or if an accepted place no longer exists.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	accepted := flag.String("accepted", "", "the file of accepted places")
	flag.Parse()
	if err := run(os.Stdout, *accepted, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "waits:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, acceptedFile, folder string) error {
	rules, err := readAccepted(acceptedFile)
	if err != nil {
		return err
	}
	places, err := inFolder(folder)
	if err != nil {
		return err
	}
	return report(out, places, rules)
}

// place is a call or a comparison that depends on the real clock.
type place struct {
	file     string // relative to the folder, with slashes
	line     int
	function string // the function of the file that contains it; "" outside of functions
	call     string // such as time.Sleep
}

// key identifies a place without its line, which other changes of the file move.
func (p place) key() string { return strings.Join([]string{p.file, p.function, p.call}, " ") }

// remedy returns how to make a test independent of the clock.
func (p place) remedy() string {
	switch p.call {
	case sleep:
		return "wait for an event, or run the test in synctest.Test"
	case since:
		return "check what happened instead of how long it took, or run the test in synctest.Test"
	}
	return "end the wait by an event (a canceled context, a closed channel), inject the clock, " +
		"or run the test in synctest.Test"
}

// report prints the places that no rule accepts. It fails if there is one, or if a rule accepts nothing.
func report(out io.Writer, places []place, rules []string) error {
	var found, counted int
	used := map[string]bool{}
	for _, p := range places {
		if slices.Contains(rules, p.key()) {
			used[p.key()] = true
			counted++
			continue
		}
		found++
		fmt.Fprintf(out, "%s:%d: %s in %s: %s\n", p.file, p.line, p.call, p.function, p.remedy())
	}
	fmt.Fprintf(out, "%d places of tests depend on the real clock and are accepted\n", counted)
	var errs []error
	if found > 0 {
		errs = append(errs, fmt.Errorf("%d more places of tests depend on the real clock", found))
	}
	for _, rule := range rules {
		if !used[rule] {
			errs = append(errs, fmt.Errorf("the accepted place %q no longer exists; remove its line", rule))
		}
	}
	return errors.Join(errs...)
}

// readAccepted returns the keys of the accepted places.
func readAccepted(path string) (keys []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case len(words) < 4:
			return nil, fmt.Errorf("%s:%d: write FILE FUNCTION CALL REASON", path, i+1)
		default:
			keys = append(keys, strings.Join(words[:3], " "))
		}
	}
	return keys, nil
}
