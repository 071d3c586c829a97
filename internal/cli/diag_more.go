package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/swdt-dev/swdt/internal/diag"
	"github.com/swdt-dev/swdt/internal/doctor"
	"github.com/swdt-dev/swdt/internal/tasks"
	"github.com/swdt-dev/swdt/internal/ui"
)

// diagCollectors are those of a bundle that other commands are made of.
func (a *app) diagCollectors() []diag.Collector {
	return []diag.Collector{
		{Name: "ps", About: "whose the processes are", Collect: a.collectPs},
		{Name: "doctor", About: "what is wrong, and what to do about it", Collect: a.collectFindings, From: diag.Network, Timeout: 3 * time.Minute},
	}
}

func (a *app) collectPs(ctx context.Context, t *diag.Task) error {
	table, err := tasks.NewObserver(t.Node, tasks.Options{Pipe: t.Document.RuntimePipe()}).Look(ctx)
	if err != nil {
		return err
	}
	o := &psOptions{remedies: a.remediesFor}
	list := psList{Nodes: []psNode{newPsNode(t.Node.Name, table, nil, o)}, options: o}
	return t.Table("ps", table, func(w io.Writer) error { return list.text(ui.NewPage(w, false)) })
}

func (a *app) collectFindings(ctx context.Context, t *diag.Task) error {
	facts, err := doctor.Gather(ctx, doctor.Sources{Node: t.Node, Cluster: t.Cluster, Join: t.Document.Node.Spec.Kubernetes.Join, Pipe: t.Document.RuntimePipe()})
	if err != nil {
		return err
	}
	report, err := doctor.Examine(facts)
	if err != nil {
		return err
	}
	var found []diag.Finding
	for i, f := range report.Findings {
		f.Remedy = a.remediesFor(t.Node.Name, f.Remedy)
		report.Findings[i] = f
		found = append(found, diag.Finding{Severity: string(f.Severity), Title: f.What, Evidence: f.Evidence, Remedy: f.Remedy})
	}
	t.Find(found...)
	err = t.Table("doctor", report, func(w io.Writer) error {
		var rows [][]string
		for _, f := range report.Findings {
			rows = append(rows, []string{string(f.Severity), f.Rule, f.What, f.Evidence, f.Remedy})
		}
		for _, s := range report.Skipped {
			rows = append(rows, []string{"not looked", s.Rule, s.Why})
		}
		return ui.Table(w, []string{"SEVERITY", "RULE", "FINDING", "SEEN", "REMEDY"}, rows)
	})
	if err != nil {
		return err
	}
	return t.Table("doctor-facts", facts, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "The facts that the rules looked at; -o json shows them.")
		return err
	})
}
