package suite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
)

const (
	// OutputName is the name of the file with a run's output, in the folder of the run.
	OutputName = "output.log"
	// DefaultGrace is how long an interrupted process may take to clean up: its own limit is 30 s.
	DefaultGrace = 40 * time.Second
	// maxOutput bounds the output of one run, in bytes. A run that prints more is ended.
	maxOutput = 2 << 30
	// lookInterval is the pause between two looks at the output of a run.
	lookInterval = 200 * time.Millisecond
	// crashLines is the number of lines that a CrashError quotes.
	crashLines = 12
)

// RunOptions configure one run.
type RunOptions struct {
	Selection
	// Specs are the specs that List returned for the selection. Each of them gets a result.
	Specs []Spec
	// Kubeconfig is the path of a kubeconfig; Context is the name of its context, or "" for the current
	// one.
	Kubeconfig, Context string
	// Folder is an existing folder for the files of the run, such as its output.
	Folder string
	// Flags are more flags of e2e.test.
	Flags []string
	// Grace is how long the process may clean up after ctx has ended; 0: DefaultGrace.
	Grace time.Duration
	// Hold is a file that the process keeps open, such as a lock; nil: none.
	Hold *os.File
	// Progress is called when something has changed in the output; nil: never.
	Progress func(Progress)
}

// CrashError reports that the program ended without a usable report, so nothing is known about its
// specs.
type CrashError struct {
	State  string // such as "exit status 2"
	Output string // the path of the whole output
	Lines  string // the lines of the output that show why the program ended
	Err    error  // why the report cannot be used
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("e2e.test ended (%s) without results: %v; its output %s has:\n%s", e.State, e.Err, e.Output,
		e.Lines)
}

func (e *CrashError) Unwrap() error { return e.Err }

// HarnessError reports that the suite failed outside of its specs.
type HarnessError struct {
	What   string
	Output string // the path of the whole output
}

func (e *HarnessError) Error() string {
	return fmt.Sprintf("the suite failed outside of its specs: %s; the output is %s", e.What, e.Output)
}

// Run runs the selected specs once, in the order that Ginkgo chooses. The report has a result for each
// spec of o.Specs, also if the error is not nil; a failed spec is no error. The error is a *CrashError or
// a *HarnessError, or the cause of ctx if ctx ended.
func (b Binary) Run(ctx context.Context, o RunOptions) (Report, error) {
	output := filepath.Join(o.Folder, OutputName)
	file, err := localfile.Create(output)
	if err != nil {
		return o.complete(Report{}), fmt.Errorf("run e2e.test: %w", err)
	}
	defer file.Close()
	cmd := exec.Command(b.Path, o.flags()...) //nolint:noctx // stop ends it, with time to clean up
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.Folder, file, file
	if o.Hold != nil && runtime.GOOS != "windows" { // Windows cannot pass files on in this way
		cmd.ExtraFiles = []*os.File{o.Hold}
	}
	child, err := start(cmd)
	if err != nil {
		return o.complete(Report{}), &BinaryError{Path: b.Path, What: "did not start", Err: err,
			Remedy: "is it an e2e.test for this machine, and executable?"}
	}
	err = o.follow(ctx, child, output)
	report, readErr := readReportFile(filepath.Join(o.Folder, reportName))
	report = o.complete(report)
	switch {
	case err != nil:
		return report, err
	case readErr != nil:
		if errors.Is(readErr, fs.ErrNotExist) {
			readErr = errors.New("it wrote no report")
		}
		return report, &CrashError{State: cmd.ProcessState.String(), Output: output, Lines: quoted(output), Err: readErr}
	}
	return report, report.harness(cmd.ProcessState.Success(), output)
}

// follow reads the output until the process has ended. If ctx ends, follow stops the process.
func (o RunOptions) follow(ctx context.Context, child *child, output string) error {
	follower, err := newFollower(output, o.Specs, o.Progress)
	if err != nil {
		child.kill()
		<-child.ended
		return fmt.Errorf("read the output of e2e.test: %w", err)
	}
	defer follower.Close()
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		size, err := follower.read()
		if err == nil && size > maxOutput {
			err = fmt.Errorf("e2e.test has printed more than %d bytes, so it was ended; see the end of %s", int64(maxOutput),
				output)
		}
		if err != nil {
			child.kill()
			<-child.ended
			return err
		}
		select {
		case <-child.ended:
			_, err := follower.read()
			return err
		case <-ctx.Done():
			child.stop(o.grace())
			_, _ = follower.read()
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

func (o RunOptions) grace() time.Duration {
	if o.Grace > 0 {
		return o.Grace
	}
	return DefaultGrace
}

func (o RunOptions) flags() []string {
	flags := []string{
		"--ginkgo.v", "--ginkgo.no-color", "--ginkgo.json-report=" + filepath.Join(o.Folder, reportName),
		"--report-dir=" + filepath.Join(o.Folder, "artifacts"), "--e2e-output-dir=" + filepath.Join(o.Folder, "artifacts"),
		// By default, e2e.test reads files of tests two folders above its working folder.
		"--repo-root=" + o.Folder,
		"--kubeconfig=" + o.Kubeconfig,
	}
	if o.Context != "" {
		flags = append(flags, "--context="+o.Context)
	}
	return append(append(flags, o.Selection.flags()...), o.Flags...)
}

// complete returns the report with a result for each spec that should have run. A spec whose result the
// report lacks was not run.
func (o RunOptions) complete(r Report) Report {
	seen := map[string]bool{}
	for _, result := range r.Results {
		seen[result.Name] = true
	}
	for _, spec := range o.Specs {
		if !seen[spec.Name] {
			r.Results = append(r.Results, Result{Spec: spec, Outcome: NotRun, Message: "the run ended before it"})
		}
	}
	return r
}

// harness returns a *HarnessError if the suite failed for other reasons than its specs.
func (r Report) harness(success bool, output string) error {
	failed := false
	for _, result := range r.Results {
		failed = failed || result.Outcome == Failed
	}
	var what []string
	for _, s := range r.Suite {
		what = append(what, s.Name+" "+s.State+": "+Shortened(s.Message, 2000))
	}
	if len(what) == 0 && !success && !failed {
		what = append(r.Reasons, "e2e.test reports a failure, but none of its specs failed")
	}
	if len(what) == 0 {
		return nil
	}
	return &HarnessError{What: strings.Join(what, "; "), Output: output}
}

// quoted returns the lines of an output that show why the program ended. These are the last lines or, if
// the program ended before it ran specs, the first lines: after a wrong flag, it prints all its flags.
func quoted(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	part := make([]byte, min(info.Size(), 4<<10))
	n, _ := file.ReadAt(part, 0)
	lines := strings.Split(strings.TrimSpace(string(part[:n])), "\n")
	if id, err := RunID(path); err != nil || id == "" {
		lines = lines[:min(len(lines), crashLines)]
	} else {
		n, _ = file.ReadAt(part, info.Size()-int64(len(part)))
		lines = strings.Split(strings.TrimSpace(string(part[:n])), "\n")
		lines = lines[max(0, len(lines)-crashLines):]
	}
	return strings.ToValidUTF8(strings.Join(lines, "\n"), "\uFFFD")
}
