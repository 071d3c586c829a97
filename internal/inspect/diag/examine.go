package diag

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/inspect/owners"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// examinations returns the collectors that store the results of `swdt ps` and `swdt doctor`.
func examinations() []Collector {
	return []Collector{
		{Name: "ps", About: "processes, with the pod, container or service that owns them", Collect: processTable},
		{Name: "doctor", About: "faults of the node, with their remedies", Collect: examine, From: Network,
			Timeout: 3 * time.Minute},
	}
}

func processTable(ctx context.Context, t *Task) error {
	pipe := t.Document.RuntimePipe()
	table, err := owners.NewObserver(t.Node, owners.Options{Pipe: pipe}).Observe(ctx)
	if err != nil {
		return err
	}
	results := []fleet.Result[owners.Table]{{Document: t.Document, Value: table}}
	report := owners.NewReport(results, owners.Selection{Remedies: t.remedies})
	return t.Table("ps", table, func(w io.Writer) error { return report.WriteText(ui.NewPage(w, false)) })
}

// FactsTable is the table with the facts of package doctor, as `swdt doctor compare` reads them.
const FactsTable = "doctor-facts"

// examine stores the facts about the node, and the findings of doctor's rules.
func examine(ctx context.Context, t *Task) error {
	facts, err := doctor.Gather(ctx, doctor.Sources{
		Node: t.Node, Cluster: t.Cluster, Join: t.Document.Node.Spec.Kubernetes.Join,
		Provisioners: t.Document.Node.Spec.Kubernetes.Provisioners, Pipe: t.Document.RuntimePipe(),
		Everything: true,
	})
	if err != nil {
		return err
	}
	report, err := doctor.Examine(facts)
	if err != nil {
		return err
	}
	var found []finding.Finding
	for i, f := range report.Findings {
		f.Remedy = t.remedies(t.Node.Name, f.Remedy)
		report.Findings[i] = f
		found = append(found, f.Finding)
	}
	t.Find(found...)
	if err := t.Table("doctor", report, func(w io.Writer) error { return findingsTable(w, report) }); err != nil {
		return err
	}
	return t.Table(FactsTable, facts, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "The facts that the rules looked at; -o json shows them, and a comparison of bundles reads them.")
		return err
	})
}

func findingsTable(w io.Writer, report doctor.Report) error {
	var rows [][]string
	for _, f := range report.Findings {
		rows = append(rows, []string{string(f.Severity), f.Rule, f.What, f.Evidence, f.Remedy})
	}
	for _, s := range report.Skipped {
		rows = append(rows, []string{"skipped", s.Rule, s.Why})
	}
	return ui.Table(w, []string{"SEVERITY", "RULE", "FINDING", "SEEN", "REMEDY"}, rows)
}
