package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// memory limits the address space of a test program, in KiB: a mutant may allocate without end.
const memory = 8 << 20

// longest is how long the tests may run without a mutant.
const longest = 10 * time.Minute

// environment returns the environment of the go command: the one of the house's builds, whose cache it shares.
func environment() []string { return append(os.Environ(), "CGO_ENABLED=0") }

// test gives each mutant its class. It returns the CPU time of the test programs in seconds.
func test(ctx context.Context, s *source, sampled, always []*mutant, o options) (float64, error) {
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	t := &tester{source: s, work: work}
	highest := 0
	for _, m := range sampled {
		highest = max(highest, m.id)
	}
	program, err := t.build(ctx, "sample", sampled, helpers(s.name, highest))
	if err != nil || program == "" { // without tests, no mutant is reached
		for _, m := range append(sampled, always...) {
			m.Class = notReached
		}
		return 0, err
	}
	reached, err := t.measure(ctx, program, o.grace)
	if err != nil {
		return t.cpu.Seconds(), err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(o.jobs)
	for _, m := range sampled {
		if m.Class = notReached; reached[m.id] {
			group.Go(func() (err error) {
				if m.Class, err = t.classify(groupCtx, program, m.id); m.Class != killed && err == nil {
					fmt.Fprintf(o.story, "%s: %s\n", m.Class, m)
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return t.cpu.Seconds(), err
	}
	for i, m := range always {
		program, err := t.build(ctx, fmt.Sprintf("always%d", i), []*mutant{m}, nil)
		if err != nil {
			return t.cpu.Seconds(), err
		}
		if m.Class, err = t.classify(ctx, program, 0); err != nil {
			return t.cpu.Seconds(), err
		}
	}
	return t.cpu.Seconds(), nil
}

// tester builds and runs the tests of one package.
type tester struct {
	*source
	work  string        // a folder
	limit time.Duration // of one run
	slow  string        // the tests that run last, as a regular expression; "": none
	lock  sync.Mutex
	cpu   time.Duration
}

// build makes a test program with mutants, and returns its path, or "" if the package has no tests.
func (t *tester) build(ctx context.Context, name string, mutants []*mutant, helpers []byte) (string, error) {
	changed := t.instrumented(mutants)
	if helpers != nil {
		changed[filepath.Join(filepath.Dir(t.files[0].path), "mutants_generated.go")] = helpers
	}
	folder := filepath.Join(t.work, name)
	overlay, err := writeOverlay(folder, changed)
	if err != nil {
		return "", err
	}
	program := filepath.Join(folder, "tests")
	command := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-vet=off", "-overlay", overlay, "-o", program,
		"./"+t.folder)
	command.Env = environment()
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the tests with mutants (%s): %w\n%s", name, err, output)
	}
	if _, err := os.Stat(program); err != nil {
		return "", nil
	}
	return program, nil
}

// writeOverlay writes the changed files into a folder, and a list of them for the go command, whose path it returns.
func writeOverlay(folder string, changed map[string][]byte) (string, error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, text := range changed {
		replace[path] = filepath.Join(folder, filepath.Base(path))
		if err := os.WriteFile(replace[path], text, 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// measure runs the tests without a mutant, sets the time limit and the slow tests of all further runs, and returns the
// numbers of the mutants that the tests reach.
func (t *tester) measure(ctx context.Context, program string, grace time.Duration) (map[int]bool, error) {
	file := filepath.Join(t.work, "reached")
	t.limit = longest
	output, elapsed, err := t.run(ctx, program, reachedVariable+"="+file, "-test.v")
	if err != nil {
		return nil, fmt.Errorf("run the tests without a mutant: %w\n%s", err, output)
	}
	t.limit = 5*elapsed + grace
	t.slow = slowTests(output)
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	reached := map[int]bool{}
	for _, line := range strings.Fields(string(text)) {
		id, err := strconv.Atoi(line)
		if err != nil {
			return nil, fmt.Errorf("read the mutants that were reached: %w", err)
		}
		reached[id] = true
	}
	return reached, nil
}

// slowTests returns the tests that took more than a twentieth of the time of all tests, as a regular expression.
func slowTests(output []byte) string {
	seconds, sum := map[string]float64{}, 0.0
	for _, match := range testEnd.FindAllSubmatch(output, -1) {
		took, _ := strconv.ParseFloat(string(match[2]), 64)
		seconds[string(match[1])], sum = took, sum+took
	}
	maps.DeleteFunc(seconds, func(_ string, took float64) bool { return took <= sum/20 })
	if len(seconds) == 0 {
		return ""
	}
	return "^(" + strings.Join(sortedKeys(seconds), "|") + ")$"
}

var testEnd = regexp.MustCompile(`(?m)^--- PASS: (\w+) \(([0-9.]+)s\)$`)

// classify runs the tests with one mutant on. The slow tests run only if all others have passed, since most mutants
// are killed by a fast one.
func (t *tester) classify(ctx context.Context, program string, id int) (class, error) {
	passes := [][]string{nil}
	if t.slow != "" {
		passes = [][]string{{"-test.skip", t.slow}, {"-test.run", t.slow}}
	}
	for _, arguments := range passes {
		_, elapsed, err := t.run(ctx, program, onVariable+"="+strconv.Itoa(id), arguments...)
		exit := (*exec.ExitError)(nil)
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err == nil:
		case !errors.As(err, &exit):
			return "", err
		case elapsed >= t.limit:
			return timeout, nil
		default:
			return killed, nil
		}
	}
	return survived, nil
}

// run runs a test program in the folder of the package, with a temporary folder of its own. timeout(1) ends the whole
// group of processes, also those that a test has started.
func (t *tester) run(ctx context.Context, program, variable string, arguments ...string) (
	output []byte, elapsed time.Duration, err error) {
	temporary, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(temporary)
	arguments = append([]string{"-c", `ulimit -v "$0" && exec timeout -s KILL "$@"`, strconv.Itoa(memory),
		fmt.Sprintf("%.3f", t.limit.Seconds()), program, "-test.failfast", "-test.short=false"}, arguments...)
	command := exec.CommandContext(ctx, "sh", arguments...)
	command.Dir = filepath.Dir(t.files[0].path)
	// Package rapid would write inputs with which a test fails into the folder of the package, and replay them in later runs.
	command.Env = append(os.Environ(), "TMPDIR="+temporary, "RAPID_NOFAILFILE=true", variable)
	// timeout passes this signal on to the group.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 5 * time.Second
	kept := &tail{}
	command.Stdout, command.Stderr = kept, kept
	begin := time.Now()
	err = command.Run()
	elapsed = time.Since(begin)
	if state := command.ProcessState; state != nil {
		t.lock.Lock()
		t.cpu += state.UserTime() + state.SystemTime()
		t.lock.Unlock()
	}
	return kept.Bytes(), elapsed, err
}

// tail keeps the end of what is written to it.
type tail struct{ bytes.Buffer }

func (t *tail) Write(data []byte) (int, error) {
	const most = 4 << 20
	if t.Len() > most {
		t.Next(t.Len() - most/2)
	}
	return t.Buffer.Write(data)
}
