package diag

import (
	"context"
	"io"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/hang"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/ui"
)

// hangs stores the result of `swdt diag dump`.
func hangs(ctx context.Context, t *Task) error {
	options := hang.Options{Pipe: t.Document.RuntimePipe(), MetricsURL: kubeproxy.DefaultMetricsURL}
	if t.Cluster != nil {
		options.Kubelet = func(ctx context.Context) (io.ReadCloser, error) {
			name, err := t.objectName(ctx)
			if err != nil {
				return nil, err
			}
			return t.Cluster.KubeletGoroutines(ctx, name)
		}
	}
	dump, err := hang.Gather(ctx, t.Node, options)
	if err != nil {
		return err
	}
	results := []fleet.Result[hang.Node]{{Document: t.Document, Value: dump}}
	report := hang.NewReport(results, time.Now(), t.remedies)
	return t.Table("dump", report, func(w io.Writer) error { return report.WriteText(ui.NewPage(w, false)) })
}
