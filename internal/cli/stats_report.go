package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/inspect/stats/report"
	"github.com/swdt-dev/swdt/internal/localfile"
)

func (a *app) statsReportCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "report RECORDING [RECORDING] [flags]",
		Short: "Make an HTML page of one or two recordings",
		Long: `Writes a page with a chart for each container: reported and computed cores over
time, with impossible values marked and the numbers under the pointer. The page
is one file and fetches nothing.`,
		Example: examples("stats report before.swdt", "", "stats report before.swdt after.swdt -w both.html",
			"side by side"),
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(_ *cobra.Command, args []string) error { return a.runStatsReport(args, out) },
	}
	cmd.ValidArgsFunction = completeFiles
	cmd.Flags().StringVarP(&out, "out", "w", "report.html", "`file` to write; - is stdout")
	must(cmd.MarkFlagFilename("out"))
	return cmd
}

func (a *app) runStatsReport(paths []string, out string) error {
	first, err := report.Load(paths[0])
	if err != nil {
		return err
	}
	var second *report.Recorded
	if len(paths) > 1 {
		loaded, err := report.Load(paths[1])
		if err != nil {
			return err
		}
		second = &loaded
	}
	var page bytes.Buffer
	if err := report.Page(&page, first, second); err != nil {
		return err
	}
	if out == stdoutFile {
		if !a.inText() {
			return usagef("with -w - the page is on stdout: leave -o %s out", a.format())
		}
		_, err := page.WriteTo(a.streams.Out)
		return err
	}
	for _, path := range paths {
		if sameFile(path, out) {
			return usagef("--out %s is the recording itself; name another file", out)
		}
	}
	if err := os.WriteFile(out, page.Bytes(), localfile.Private); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	written := report.Written{File: out}
	return a.print(written, written.WriteText)
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	second, err2 := os.Stat(b)
	return errors.Join(err, err2) == nil && os.SameFile(first, second)
}
