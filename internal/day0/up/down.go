package up

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/vm"
)

// Down removes the things that Up has made and recorded: the joins of machines that stay, VMs, and
// the cluster. The report names the things that stay.
func Down(ctx context.Context, doc config.ClusterDocument, documents []config.Document, o Options) (Report, error) {
	w, err := begin("down", doc, documents, o)
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
	stages, err := w.run(ctx, w.removing(made))
	kept := slices.Concat(w.kept(made), w.left, w.lost(made))
	return newReport(w.name(), stages, kept, time.Since(began), err), err
}

// stays adds a thing that a stage of Down does not remove to the report.
func (w *work) stays(thing string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = append(w.left, thing)
	slices.SortFunc(w.left, natural.Compare)
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
// drains the node first, unless NoDrain is set, and deletes its Node last. If NoDrain is set and the node
// does not answer, the function gives up the join.
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
		if w.NoDrain && ctx.Err() == nil && noAnswer(err) { // after an interruption, the node may still answer
			return w.withoutAnswer(name, err, r)
		}
		if err != nil {
			return done{}, err
		}
		defer n.Leave(ctx)
		options := join.ResetOptions{Holder: plan.Holder("down"), Kept: func(folder, why string) {
			w.stays(folder + " on " + name + ": " + why)
		}}
		if !made.Cluster { // the cluster stays, so evict its pods from the node and delete its Node
			if options.Cluster, err = w.clusterToLeave(ctx, r); err != nil {
				return done{}, err
			}
			options.DeleteNode = options.Cluster != nil
			if !w.NoDrain {
				options.Drain = &cluster.DrainOptions{}
			}
		}
		result, err := join.RunReset(ctx, n, w.documents[i], options, r)
		if err != nil {
			return done{}, err
		}
		return w.summary(result.Steps), w.notes.change(func(made *record) {
			made.Nodes = without(made.Nodes, name)
			made.forget(name)
		})
	}
}

// clusterToLeave returns the cluster that stays when a node leaves it. If NoDrain is set and the cluster
// does not answer, it returns nil: the node then leaves without it.
func (w *work) clusterToLeave(ctx context.Context, r ui.Reporter) (*cluster.Cluster, error) {
	control, err := w.controlPlane(ctx)
	if err == nil && w.NoDrain {
		_, err = control.api.Version(ctx)
	}
	var away *cluster.UnreachableError
	if w.NoDrain && ctx.Err() == nil && (errors.As(err, &away) || errors.Is(err, kindcluster.ErrNoCluster)) {
		r.Warn("the cluster does not answer, so it keeps the Node: %v", err)
		return nil, nil
	}
	return control.api, err
}

// noAnswer reports whether an error of a connection means that no machine answers. It returns false if
// a machine answers, but is not the expected one or refuses the user, since a setting is then wrong.
func noAnswer(err error) bool {
	var (
		timeout *ssh.TimeoutError
		refused *ssh.RefusedError
		noRoute *ssh.NoRouteError
		broken  *ssh.DialError
		noName  *ssh.NameError
	)
	for _, target := range []any{&timeout, &refused, &noRoute, &broken, &noName} {
		if errors.As(err, target) {
			return true
		}
	}
	return errors.Is(err, vm.ErrStopped)
}

// withoutAnswer gives up the join of a node that does not answer; err is the reason.
func (w *work) withoutAnswer(name string, err error, r ui.Reporter) (done, error) {
	r.Warn("the node does not answer, so its join is not undone: %v", err)
	w.mu.Lock()
	w.silent = append(w.silent, name)
	w.mu.Unlock()
	return done{true, "it does not answer: its join was not undone"},
		w.notes.change(func(made *record) { made.Nodes = without(made.Nodes, name) })
}

// lost describes the things that Down leaves behind because their nodes did not answer. The record no
// longer contains these things.
func (w *work) lost(made record) (lost []string) {
	slices.SortFunc(w.silent, natural.Compare)
	for _, name := range w.silent {
		if !slices.Contains(made.Machines, name) {
			lost = append(lost, "the join on "+name+", which does not answer: "+
				remedy.Command("reset", "--no-drain", "-n", name)+" removes it once the node answers")
		}
		if !made.Cluster {
			lost = append(lost, "the Node of "+name+" in the cluster: "+
				remedy.KubectlCommand("delete", "node", w.nodeName(name))+" removes it")
		}
	}
	return lost
}

// nodeName returns the name of a node in the cluster, as far as the node's file has it.
func (w *work) nodeName(name string) string {
	for _, document := range w.documents {
		if wanted := document.Node.Spec.Kubernetes.Join.NodeName; document.Node.Metadata.Name == name && wanted != "" {
			return wanted
		}
	}
	return name
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
			made.forget(name)
		})
	}
}

func (w *work) removeCluster(ctx context.Context, r ui.Reporter) (done, error) {
	report, err := w.Clusters.Delete(ctx, w.name(), r)
	if err != nil {
		return done{}, err
	}
	return done{report.Result == fleet.Changed, "deleted with everything in it"},
		w.notes.change(func(made *record) {
			made.Cluster = false
			made.forget("")
		})
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
