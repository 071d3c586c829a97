package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// run runs the stages of a tier in the order of the table. The first failure ends a tier whose stages run
// each time; of the others, each stage stands for itself.
func (h *house) run(ctx context.Context, out io.Writer, tier string, names []string) error {
	stages, err := h.stages(tier, names)
	if err != nil {
		return err
	}
	folder := filepath.Join(h.root, "bin", "stages", tier)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	begin := time.Now()
	var records []record
	var failures []error
	for _, s := range stages {
		fmt.Fprintf(out, "\n== %s: %s (after %s)\n", s.name, s.shows, minutes(time.Since(begin).Seconds()))
		r, err := h.runStage(ctx, out, s, folder)
		if err != nil {
			failures = append(failures, err)
		}
		records = append(records, r)
		if err != nil && (s.record == always || ctx.Err() != nil) {
			break
		}
	}
	failures = append(failures, summarize(out, folder, stages, records))
	return errors.Join(failures...)
}

// runStage runs a stage, unless a record says that it has passed already, and records how it ended.
func (h *house) runStage(ctx context.Context, out io.Writer, s stage, folder string) (record, error) {
	r := record{Stage: s.name, Began: time.Now().UTC().Truncate(time.Second), System: runtime.GOOS + "/" + runtime.GOARCH}
	var err error
	if r.Key, err = h.key(ctx, s); err != nil {
		return r, err
	}
	earlier, err := h.earlier(s, r.Key)
	if err != nil {
		return r, err
	}
	if earlier != nil {
		fmt.Fprintf(out, "not run: it passed on %s with the same %s, %.12s, at commit %.12s\n",
			earlier.Began.Format(time.DateTime), s.record, r.Key, earlier.Commit)
		earlier.Skipped = true
		return *earlier, nil
	}
	switch {
	case s.record == always:
	case r.Key == "":
		fmt.Fprintln(out, "runs, and its record will not count: the tree has changes that are not committed")
	default:
		fmt.Fprintf(out, "runs: there is no record of a passed run with the same %s, %.12s\n", s.record, r.Key)
	}
	if r.Commit, err = h.git(ctx, "rev-parse", "HEAD"); err != nil {
		return r, err
	}
	err = h.execute(ctx, out, s, folder, &r)
	r.Passed = err == nil
	// A change that came while the stage ran was not tested.
	if key, keyErr := h.key(ctx, s); keyErr != nil || key != r.Key {
		r.Key = ""
	}
	return r, errors.Join(err, h.save(r))
}

// execute runs the stage's script and measures it.
func (h *house) execute(ctx context.Context, out io.Writer, s stage, folder string, r *record) error {
	cmd := exec.CommandContext(ctx, filepath.Join(h.root, "scripts", "stage.sh"), s.name)
	cmd.Dir, cmd.Stdout, cmd.Stderr = h.root, out, os.Stderr
	cmd.Env = append(cmd.Environ(), "SWDT_STAGE_FOLDER="+folder)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	begin := time.Now()
	err := cmd.Run()
	r.Wall = time.Since(begin).Seconds()
	if cmd.ProcessState != nil {
		r.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	if err != nil {
		return fmt.Errorf("the stage %s failed: %w", s.name, err)
	}
	return nil
}

// summarize prints what the stages cost, and writes it with the slowest tests into a file beside the folder.
func summarize(out io.Writer, folder string, stages []stage, records []record) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STAGE\tVERDICT\tWALL\tCPU-S\tBUDGET")
	var wall, cpu float64
	for i, r := range records {
		fmt.Fprintf(table, "%s\t%s\t%s\t%.0f\t%d\n", r.Stage, verdict(r), minutes(r.Wall), r.CPU, stages[i].budget)
		if !r.Skipped {
			wall, cpu = wall+r.Wall, cpu+r.CPU
		}
	}
	fmt.Fprintf(table, "all that ran\t\t%s\t%.0f\t\n", minutes(wall), cpu)
	if err := table.Flush(); err != nil {
		return err
	}
	for i, r := range records {
		if budget := float64(stages[i].budget); !r.Skipped && r.CPU > budget*1.5 {
			fmt.Fprintf(&text, "warning: %s took %.0f CPU-seconds, more than 1.5 times its budget of %.0f\n", r.Stage, r.CPU, budget)
		}
	}
	fmt.Fprintf(out, "\n%s", text.String())
	slow, err := slowest(folder, 30)
	if err != nil {
		return err
	}
	path := folder + ".txt"
	fmt.Fprintf(out, "the slowest tests are in %s\n", path)
	return os.WriteFile(path, []byte(text.String()+slow), 0o644)
}

func verdict(r record) string {
	switch {
	case r.Skipped:
		return "passed on " + r.Began.Format(time.DateOnly)
	case r.Passed:
		return "passed"
	}
	return "FAILED"
}

// minutes formats seconds as minutes and seconds.
func minutes(seconds float64) string {
	return fmt.Sprintf("%d:%02d", int(seconds)/60, int(seconds)%60)
}

// status prints how the stages of a tier ended at this commit.
func (h *house) status(ctx context.Context, out io.Writer, tier string) error {
	stages, err := h.stages(tier, nil)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STAGE\tVERDICT\tBEGAN\tWALL\tCPU-S")
	for _, s := range stages {
		key, err := h.key(ctx, s)
		if err != nil {
			return err
		}
		r, err := h.last(s, key)
		if err != nil {
			return err
		}
		if r == nil {
			fmt.Fprintf(table, "%s\tnot run\t\t\t\n", s.name)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.0f\n", s.name, verdict(*r), r.Began.Format(time.DateTime), minutes(r.Wall), r.CPU)
	}
	return table.Flush()
}
