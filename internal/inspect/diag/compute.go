package diag

import (
	"context"
	"errors"
	"io"

	"github.com/swdt-dev/swdt/internal/inspect/hcs"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/ui"
)

// networkServices stores the tables of `swdt hns`, with the pods from the runtime and the
// Services from the cluster.
func networkServices(ctx context.Context, t *Task) error {
	state, err := hns.Read(ctx, t.Node.Compute)
	if err != nil {
		return err
	}
	view := hns.View{State: state, All: state, Known: t.owners.known}
	errs := []error{t.owners.err}
	if client, err := t.runtime(ctx); err == nil {
		view.Known.Here, err = hns.Pods(ctx, client.Runtime)
		view.Known.Runtime = err == nil
		errs = append(errs, err, client.Close())
	} else if !absent(err) {
		errs = append(errs, err)
	}
	for _, kind := range []struct {
		name     string
		document any
		table    ui.Listing
	}{
		{"hns-networks", state.Networks, view.Networks()}, {"hns-endpoints", state.Endpoints, view.Endpoints()},
		{"hns-loadbalancers", state.LoadBalancers, view.LoadBalancers()},
		{"hns-namespaces", state.Namespaces, view.Namespaces()},
		{"hns-policies", view.Owned(), view.Policies()},
	} {
		errs = append(errs, t.Table(kind.name, kind.document, func(w io.Writer) error {
			return ui.Table(w, kind.table.Header, kind.table.Rows)
		}))
	}
	return errors.Join(errs...)
}

// computeSystems stores the compute systems with the documents of the Host Compute Service.
func computeSystems(ctx context.Context, t *Task) error {
	systems, err := hcs.List(ctx, t.Node.Compute)
	if err != nil {
		return err
	}
	return t.Table("hcs", systems, func(w io.Writer) error {
		var rows [][]string
		for _, s := range systems {
			memory, cpu := "", ""
			if s.Memory != nil {
				memory = ui.Size(int64(s.Memory.PrivateWorkingSet))
			}
			if s.CPU != nil {
				cpu = ui.Seconds(s.CPU.Total)
			}
			rows = append(rows, []string{hcs.Short(s.ID), string(s.Isolation), s.State, memory, cpu, s.Owner})
		}
		return ui.Table(w, []string{"ID", "ISOLATION", "STATE", "MEMORY", "CPU TIME", "OWNER"}, rows)
	})
}
