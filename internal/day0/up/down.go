package up

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// Down removes the things that Up has made and recorded: the joins of machines that stay, VMs, and
// the cluster. The report names the things that stay.
func Down(ctx context.Context, doc config.ClusterDocument, documents []config.Document, o Options) (Report, error) {
	w, err := begin(doc, documents, o)
	if err != nil {
		return Report{}, err
	}
	defer w.notes.close()
	made := w.notes.now()
	if !made.empty() {
		if err := o.Confirm(ctx, made.things()); err != nil {
			return Report{}, err
		}
	}
	began := time.Now()
	stages, err := runStages(ctx, w.removing(made), o.Reporter)
	return newReport(w.name(), stages, w.kept(made), time.Since(began), err), err
}

// removing returns the stages of Down.
func (w *work) removing(made record) (all []*stage) {
	var nodes []*stage
	joinOf := map[string]*stage{}
	for _, name := range made.Nodes {
		if made.leaves(name) {
			joinOf[name] = &stage{kind: Join, node: name, run: w.leave(name)}
			nodes = append(nodes, joinOf[name])
		}
	}
	all = append(all, nodes...)
	for _, name := range made.Machines {
		machine := &stage{kind: Machine, node: name, run: w.removeMachine(name)}
		if left := joinOf[name]; left != nil {
			machine.needs = []*stage{left}
		}
		all = append(all, machine)
	}
	if made.Cluster {
		all = append(all, &stage{kind: Cluster, needs: nodes, run: w.removeCluster})
	}
	return all
}

// leave returns the function that undoes the join of a node. If the cluster stays, the function
// drains the node first, and deletes its Node last.
func (w *work) leave(name string) func(context.Context, ui.Reporter) (done, error) {
	return func(ctx context.Context, r ui.Reporter) (done, error) {
		i := slices.IndexFunc(w.documents, func(d config.Document) bool { return d.Node.Metadata.Name == name })
		if i < 0 {
			return done{}, errors.New("no given node file describes the node: name the node's file with --config")
		}
		made := w.notes.now()
		if slices.Contains(made.Machines, name) && !w.Machines.Exist(name) {
			r.Warn("the VM does not exist any more: if its Node is still in the cluster, delete it with "+
				"`kubectl delete node %s`", name)
			return done{message: "its VM does not exist any more"}, nil
		}
		n, err := w.Connect(ctx, w.documents[i], r)
		if err != nil {
			return done{}, err
		}
		defer n.Leave(ctx)
		options := join.ResetOptions{Holder: plan.Holder("down")}
		if !made.Cluster { // the cluster stays, so its pods have to leave the node, and the node the cluster
			control, err := w.controlPlane(ctx)
			if err != nil {
				return done{}, err
			}
			options.Cluster, options.DeleteNode, options.Drain = control.api, true, &cluster.DrainOptions{}
		}
		result, err := join.RunReset(ctx, n, w.documents[i], options, r)
		if err != nil {
			return done{}, err
		}
		return w.summary(result.Steps), w.notes.change(func(made *record) { made.Nodes = without(made.Nodes, name) })
	}
}

func (w *work) removeMachine(name string) func(context.Context, ui.Reporter) (done, error) {
	return func(ctx context.Context, r ui.Reporter) (done, error) {
		removed := done{message: "it does not exist any more"}
		if w.Machines.Exist(name) {
			report, err := w.Machines.Delete(ctx, name, r)
			if err != nil {
				return done{}, err
			}
			removed = done{report.Result == fleet.Changed, "deleted with its disks and snapshots"}
		}
		return removed, w.notes.change(func(made *record) {
			made.Machines, made.Nodes = without(made.Machines, name), without(made.Nodes, name)
		})
	}
}

func (w *work) removeCluster(ctx context.Context, r ui.Reporter) (done, error) {
	report, err := w.Clusters.Delete(ctx, w.name(), r)
	if err != nil {
		return done{}, err
	}
	return done{report.Result == fleet.Changed, "deleted with everything in it"},
		w.notes.change(func(made *record) { made.Cluster = false })
}

// kept describes the things in the documents that Down does not remove.
func (w *work) kept(made record) (kept []string) {
	switch {
	case w.existing():
		kept = append(kept, "cluster "+w.name()+", which swdt did not make")
		if plugin := w.cluster.Cluster.Spec.Network.Plugin; plugin != v1alpha1.NoPlugin {
			kept = append(kept, "the pod network "+plugin+": "+remedy.Command("network", "remove", plugin)+
				" removes what swdt has installed of it")
		}
	case !made.Cluster && !made.empty():
		kept = append(kept, "cluster "+w.name()+", which was there before `swdt up`")
	}
	for _, document := range w.documents {
		name := document.Node.Metadata.Name
		own := slices.Contains(made.Machines, name)
		if document.Node.Spec.Machine != nil && !own && w.Machines.Exist(name) {
			kept = append(kept, "VM "+name+", which was there before `swdt up`")
		}
		if !own && slices.Contains(made.Nodes, name) && wantsSetup(document) {
			kept = append(kept, "the settings of spec.setup on "+name)
		}
	}
	return kept
}
