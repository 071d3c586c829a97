package suite_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/testing/suitetest"
)

// standIn is the path of the stand-in for e2e.test, built once for all tests.
func standIn(t testing.TB) string {
	t.Helper()
	if path := filepath.Join(shared, "e2e.test"); exists(path) {
		return path
	}
	return suitetest.BuildIn(t, shared)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// shared is a folder for all tests of the package.
var shared string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "swdt-suite-")
	if err != nil {
		panic(err)
	}
	shared = folder
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

func open(t testing.TB) suite.Binary {
	t.Helper()
	b, err := suite.Open(context.Background(), standIn(t))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOpen(t *testing.T) {
	if b := open(t); b.Version != "v1.36.3" || !filepath.IsAbs(b.Path) {
		t.Errorf("%+v", b)
	}
	folder := t.TempDir()
	silent := filepath.Join(folder, "silent")
	if err := os.WriteFile(silent, []byte("#!/bin/sh\necho hello\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	notRunnable := filepath.Join(folder, "text")
	if err := os.WriteFile(notRunnable, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(folder, "missing"): "does not exist", folder: "is no file", silent: "has no version",
		notRunnable: "did not print its version",
	} {
		_, err := suite.Open(t.Context(), path)
		var e *suite.BinaryError
		if !errors.As(err, &e) || e.What[:min(len(e.What), len(want))] != want {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func names(specs []suite.Spec) (all []string) {
	for _, s := range specs {
		all = append(all, s.Name)
	}
	return all
}

func TestList(t *testing.T) {
	b := open(t)
	for _, test := range []struct {
		selection suite.Selection
		want      []string
	}{
		{suite.Selection{Focus: []string{`\[Conformance\]`}}, []string{
			"[sig-network] DNS should provide DNS for the cluster [Conformance]",
			"[sig-windows] Outcomes should pass [Conformance]"}},
		{suite.Selection{LabelFilter: "sig-network && !LinuxOnly"}, []string{
			"[sig-network] DNS should provide DNS for the cluster [Conformance]"}},
		{suite.Selection{Focus: []string{"DNS", "Volumes"}, Skip: []string{"Linux"}}, []string{
			"[sig-network] DNS should provide DNS for the cluster [Conformance]", "[sig-storage] Volumes should be read"}},
		{suite.Selection{Focus: []string{"^Kubernetes e2e suite .*Volumes"}}, []string{
			"[sig-storage] Volumes should be read"}},
		{suite.Selection{Focus: []string{"there is no such spec"}}, nil},
	} {
		l, err := b.List(t.Context(), test.selection)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, names(l.Specs)); diff != "" || l.Total != suitetest.Specs {
			t.Errorf("%+v: %d in total, (-want +got)\n%s", test.selection, l.Total, diff)
		}
		for _, s := range l.Specs {
			if test.selection.LabelFilter == "" && !test.selection.MatchesText(s) {
				t.Errorf("MatchesText disagrees with Ginkgo about %s", s.Name)
			}
		}
	}
	all, err := b.List(t.Context(), suite.Selection{Focus: []string{"."}})
	if err != nil || len(all.Specs) != suitetest.Specs {
		t.Fatal(len(all.Specs), err)
	}
	at := slices.IndexFunc(all.Specs, func(s suite.Spec) bool { return strings.Contains(s.Name, "[Hostile]") })
	hard := all.Specs[at]
	only, err := b.List(t.Context(), suite.Only(hard, all.Specs[0]))
	if diff := cmp.Diff([]string{all.Specs[0].Name, hard.Name}, names(only.Specs)); diff != "" || err != nil {
		t.Errorf("Only: %v\n%s", err, diff)
	}
	if hard.Sig() != "sig-windows" || hard.Line == 0 || !slices.Contains(hard.Labels, "sig-windows") {
		t.Errorf("%+v", hard)
	}
	if _, err := b.List(t.Context(), suite.Selection{Focus: []string{"[sig"}}); err == nil {
		t.Error("a filter that is no regular expression was taken")
	}
	var e *suite.BinaryError
	if _, err := b.List(t.Context(), suite.Selection{LabelFilter: "a &&"}); !errors.As(err, &e) {
		t.Errorf("a label filter that Ginkgo refuses: %v", err)
	}
}

// run lists and runs the specs that match.
func run(ctx context.Context, t *testing.T, o suite.RunOptions) (suite.Report, error) {
	t.Helper()
	b := open(t)
	l, err := b.List(t.Context(), o.Selection)
	if err != nil {
		t.Fatal(err)
	}
	o.Specs = l.Specs
	if o.Folder == "" {
		o.Folder = t.TempDir()
	}
	return b.Run(ctx, o)
}

func outcomes(r suite.Report) map[string]suite.Outcome {
	all := map[string]suite.Outcome{}
	for _, result := range r.Results {
		all[result.Name] = result.Outcome
	}
	return all
}

func TestOutcomes(t *testing.T) {
	var last suite.Progress
	r, err := run(t.Context(), t, suite.RunOptions{
		Selection: suite.Selection{Focus: []string{"Outcomes"}, Skip: []string{`\[(Slow|Endless|Stubborn|Crash|Flaky)\]`}},
		Progress:  func(p suite.Progress) { last = p },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]suite.Outcome{
		"[sig-windows] Outcomes should pass [Conformance]":              suite.Passed,
		"[sig-windows] Outcomes should fail":                            suite.Failed,
		"[sig-windows] Outcomes should skip itself":                     suite.Skipped,
		"[sig-windows] Outcomes should panic":                           suite.Failed,
		"[sig-windows] Outcomes should be printed harmlessly [Hostile]": suite.Failed,
	}
	if diff := cmp.Diff(want, outcomes(r)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if last.Done != last.Total || last.Total != len(want) {
		t.Errorf("the last progress: %+v", last)
	}
	for _, result := range r.Results {
		switch {
		case result.Outcome == suite.Skipped && result.Message != "Only supported for providers [gce] (not skeleton)":
			t.Errorf("the reason of the skip is %q", result.Message)
		case strings.Contains(result.Name, "should panic") && !strings.Contains(result.Message, "entry in nil map"):
			t.Errorf("the panic is %q", result.Message)
		case strings.Contains(result.Name, "should fail") && !strings.Contains(result.Output, "STEP: creating a pod"):
			t.Errorf("the output is %q", result.Output)
		}
	}
}

func TestAProgramThatEndsItselfIsAHarnessFailure(t *testing.T) {
	r, err := run(t.Context(), t, suite.RunOptions{Selection: suite.Selection{Focus: []string{"Crash"}}})
	var crash *suite.CrashError
	if !errors.As(err, &crash) || crash.State != "exit status 3" {
		t.Errorf("%v", err)
	}
	want := map[string]suite.Outcome{"[sig-windows] Outcomes should end the program [Crash]": suite.NotRun}
	if diff := cmp.Diff(want, outcomes(r)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAFailedPreparationIsAHarnessFailure(t *testing.T) {
	t.Setenv("SPECS_SETUP", "fail")
	r, err := run(t.Context(), t, suite.RunOptions{Selection: suite.Selection{Focus: []string{"should pass", "Volumes"}}})
	var harness *suite.HarnessError
	if !errors.As(err, &harness) || !strings.Contains(harness.What, "[BeforeSuite] failed: no node is schedulable") {
		t.Errorf("%v", err)
	}
	want := map[string]suite.Outcome{"[sig-windows] Outcomes should pass [Conformance]": suite.NotRun,
		"[sig-storage] Volumes should be read": suite.NotRun}
	if diff := cmp.Diff(want, outcomes(r)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAnInterruptedRunEndsAndKeepsResults(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	r, err := run(ctx, t, suite.RunOptions{
		Selection: suite.Selection{Focus: []string{"Endless"}},
		Progress: func(p suite.Progress) {
			if p.Current != "" {
				cancel(cause)
			}
		},
	})
	if !errors.Is(err, cause) { // the spec itself never ends
		t.Errorf("got %v", err)
	}
	want := map[string]suite.Outcome{"[sig-windows] Outcomes should wait forever [Endless]": suite.Failed}
	if diff := cmp.Diff(want, outcomes(r)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRunID(t *testing.T) {
	folder := t.TempDir()
	_, err := run(t.Context(), t, suite.RunOptions{Folder: folder,
		Selection: suite.Selection{Focus: []string{"Hostile"}}})
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(folder, suite.OutputName)
	text, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("Starting e2e run")); n < 2 {
		t.Fatalf("the hostile spec imitated the line %d times, so this tests nothing", n-1)
	}
	_, first, _ := strings.Cut(string(text), `Starting e2e run "`)
	first, _, _ = strings.Cut(first, `"`)
	id, err := suite.RunID(output)
	if id != first || err != nil {
		t.Errorf("%q, %v, want %q", id, err, first)
	}
	// Without the line before the banner, no ID of a spec is believed.
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(output, []byte(rest), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := suite.RunID(output); id != "" || err != nil {
		t.Errorf("the ID of a spec is believed: %q, %v", id, err)
	}
}
