package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/stats/report"
)

func (a *app) statsReportCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "report RECORDING [RECORDING] [flags]",
		Short: "A recording, or two, as one HTML page",
		Long: `Writes a page with a chart for each container: reported and computed cores over
time, what cannot be marked, the numbers where you point. The page is one file
that needs nothing else and fetches nothing: to send, to keep, to print.`,
		Example: examples("stats report before.swdt", "", "stats report before.swdt after.swdt -o both.html", "side by side"),
		Args:    arguments(cobra.RangeArgs(1, 2)),
		RunE:    func(_ *cobra.Command, args []string) error { return a.runStatsReport(args, output) },
	}
	cmd.ValidArgsFunction = completeFiles
	cmd.Flags().StringVarP(&output, "output", "o", "report.html", "`file` to write; - is stdout")
	must(cmd.MarkFlagFilename("output"))
	return cmd
}

func (a *app) runStatsReport(paths []string, output string) error {
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
	if output == "-" {
		_, err := page.WriteTo(a.streams.Out)
		return err
	}
	for _, path := range paths {
		if sameFile(path, output) {
			return usagef("-o %s is the recording itself; name another file", output)
		}
	}
	if err := os.WriteFile(output, page.Bytes(), localfile.Private); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	_, err = fmt.Fprintln(a.streams.Out, output)
	return err
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	second, err2 := os.Stat(b)
	return errors.Join(err, err2) == nil && os.SameFile(first, second)
}
