package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/logs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) logsListCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:   "list [flags]",
		Short: "Which logs a node has, with size and last write",
		Long: `Lists the logs of the known sources and of the node's pods: those that exist, and
those that a service is set up to write and has not written yet.`,
		Example: examples("logs list", "", "logs list -o json", "for scripts"),
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runLogsList(cmd.Context()) },
	})
}

// logList is the result of `swdt logs list`.
type logList struct {
	Nodes []nodeLogList `json:"nodes"`
}

type nodeLogList struct {
	frame
	Logs []logEntry `json:"logs"`
}

type logEntry struct {
	Source   string     `json:"source"`
	File     string     `json:"file"`
	Exists   bool       `json:"exists"`
	Size     int64      `json:"sizeBytes"`
	Modified *time.Time `json:"modified"` // null: it is not there yet
}

func (a *app) runLogsList(ctx context.Context) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, _ config.Document, _ ui.Reporter) ([]logs.Found, error) {
		return logs.List(ctx, n)
	})
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	list := logList{Nodes: []nodeLogList{}}
	for _, result := range results {
		of := nodeLogList{frame: newFrame(result.Name(), resultOK, result.Err), Logs: []logEntry{}}
		for _, found := range result.Value {
			entry := logEntry{Source: found.Source, File: found.Path, Exists: found.Exists, Size: found.Size}
			if found.Exists {
				entry.Modified = &found.Modified
			}
			of.Logs = append(of.Logs, entry)
		}
		list.Nodes = append(list.Nodes, of)
	}
	if err := a.print(list, list.text); err != nil {
		return err
	}
	return failed
}

func (l logList) text(w *ui.Page) error {
	header := []string{"SOURCE", "SIZE", "LAST WRITE", "FILE"}
	if len(l.Nodes) > 1 {
		header = append([]string{"NODE"}, header...)
	}
	var rows [][]string
	for _, of := range l.Nodes {
		for _, e := range of.Logs {
			row := []string{e.Source, "-", "not yet", e.File}
			if e.Exists {
				row[1], row[2] = ui.Size(e.Size), e.Modified.UTC().Format(time.RFC3339)
			}
			if len(l.Nodes) > 1 {
				row = append([]string{of.Name}, row...)
			}
			rows = append(rows, row)
		}
	}
	return ui.TableOr(w, "no logs", header, rows)
}
