package onnode

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/setup"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// order is one order, as the node carries it out.
type order struct {
	Options
	state     *fleetv1.NodeState
	fetched   bool   // the node had fetched the binaries before the release
	confirmed bool   // the order is one of its NodeRollout
	journal   string // the ID of the last transaction; "": none
	end       *end   // nil: the order has not ended

	node *node.Node // nil: there is no connection
	doc  config.Document
}

// open connects to the agent, if there is no connection; close ends the connection.
func (w *order) open(ctx context.Context) (err error) {
	if w.node == nil {
		w.node, err = w.Open(ctx)
	}
	return err
}

func (w *order) close() {
	if w.node != nil {
		_ = w.node.Close()
		w.node = nil
	}
}

// holder names the order in the node's lock and in the journal. A later attempt recognizes the journal
// by it.
func (w *order) holder() string {
	return fmt.Sprintf("rollout %s (%s %s)", w.state.Spec.Rollout, w.state.Spec.Action, w.state.Spec.Hash)
}

// run carries the order out. An error means that a later attempt may succeed.
func (w *order) run(ctx context.Context) (phase fleetv1.Phase, message string, err error) {
	if w.doc, err = w.document(); err != nil {
		return fleetv1.PhaseRolledBack, unchanged(err), nil
	}
	if err := w.open(ctx); err != nil {
		return "", "", err
	}
	if err := w.begin(ctx); err != nil {
		return "", "", err
	}
	end, err := w.resume(ctx)
	if err != nil || end != nil {
		return end.phaseOrNone(), end.messageOrNone(), err
	}
	if w.state.Spec.Action == fleetv1.ActionRollBack {
		return w.rollBack(ctx)
	}
	err = w.configure(ctx)
	switch {
	case interrupted(err), transient(err):
		return "", "", err
	case err != nil:
		return fleetv1.PhaseRolledBack, "its binaries are unchanged: " + err.Error(), nil
	}
	return w.apply(ctx)
}

// fetch brings the binaries of an order that is not released yet into the cache on the node. It is a dry run of
// apply, so it also finds binaries that the node could not run, and changes nothing. A server that refuses may
// give the binaries later, for example when the pull secret has come: that is an error, as a lost connection is.
func (w *order) fetch(ctx context.Context) (phase fleetv1.Phase, message string, err error) {
	if w.doc, err = w.document(); err != nil {
		return fleetv1.PhaseRolledBack, unchanged(err), nil
	}
	if len(w.doc.Node.Spec.Kubernetes.Provisioners) == 0 {
		return fleetv1.PhaseFetched, "", nil
	}
	if err := w.open(ctx); err != nil {
		return "", "", err
	}
	if err := w.offerInstalled(ctx); err != nil {
		return "", "", err
	}
	options := w.pushOptions()
	options.DryRun = true
	_, err = push.Push(ctx, w.node, w.doc, options, w.Reporter)
	switch {
	case source.Refused(err), push.IsMistake(err):
		return fleetv1.PhaseRolledBack, unchanged(err), nil
	case err != nil:
		return "", "", err
	}
	return fleetv1.PhaseFetched, "", nil
}

// interrupted reports whether err leaves open how far the node has come: the agent has ended, or its session.
func interrupted(err error) bool {
	_, lost := errors.AsType[*node.LostError](err)
	_, away := errors.AsType[*node.UnreachableError](err)
	return lost || away || errors.Is(err, context.Canceled)
}

// transient reports whether a setup failed for a reason that may pass: another swdt has the node's lock, or the node
// could not download.
func transient(err error) bool {
	_, busy := errors.AsType[*plan.BusyError](err)
	_, download := errors.AsType[*setup.DownloadError](err)
	return busy || download
}

// configure brings Windows to the state of the content's setup. It never reboots the node.
func (w *order) configure(ctx context.Context) error {
	steps := setup.Steps(w.node, w.doc.Node.Spec.Setup, setup.Options{})
	if len(steps) == 0 {
		return nil
	}
	_, err := plan.Run(ctx, steps, plan.Options{Machine: w.node, Holder: w.holder()}, w.Reporter)
	return err
}

// apply brings the binaries to the node.
func (w *order) apply(ctx context.Context) (fleetv1.Phase, string, error) {
	if len(w.doc.Node.Spec.Kubernetes.Provisioners) == 0 {
		return fleetv1.PhaseDone, "", nil
	}
	if err := w.offerInstalled(ctx); err != nil {
		return "", "", err
	}
	options := w.pushOptions()
	options.Record = w.save
	result, err := push.Push(ctx, w.node, w.doc, options, w.Reporter)
	w.took(result)
	return w.ended(err)
}

// offerInstalled lets a fetch from a registry begin with the binaries that the node has.
func (w *order) offerInstalled(ctx context.Context) error {
	status, err := push.Status(ctx, w.node, w.doc, push.StatusOptions{Sources: w.Sources}, w.Reporter)
	if err != nil {
		return err
	}
	for _, c := range status.Components {
		if c.SHA256 != "" && w.wanted(c.Name) != "" {
			w.Sources.Offer(c.SHA256, w.Local(c.Destination))
		}
	}
	return nil
}

// rollBack restores what the content has replaced. Each component that does not have the content's binary or
// arguments is back already.
func (w *order) rollBack(ctx context.Context) (fleetv1.Phase, string, error) {
	status, err := push.Status(ctx, w.node, w.doc, push.StatusOptions{Sources: w.Sources}, w.Reporter)
	if err != nil {
		return "", "", err
	}
	known, err := w.ownRecord(ctx)
	if err != nil {
		return "", "", err
	}
	var replaced []push.Former
	for _, c := range status.Components {
		was := known.of(c.Name)
		hasContent := c.SHA256 != "" && c.SHA256 == w.wanted(c.Name)
		switch {
		case known == nil && hasContent: // what the content has replaced is unknown
			was.SHA256 = c.PreviousSHA256
		case !hasContent:
			was.SHA256 = ""
		case was.SHA256 != "" && was.SHA256 != c.PreviousSHA256:
			return fleetv1.PhaseFailed, "the node no longer keeps the " + c.Name + " that it had before the content; it " +
				"still has the binaries of the content", nil
		}
		if was.SHA256 != "" || was.CommandLine != "" {
			replaced = append(replaced, was)
		}
	}
	if len(replaced) == 0 {
		return fleetv1.PhaseDone, "", nil
	}
	result, err := push.Restore(ctx, w.node, w.doc, replaced, w.pushOptions(), w.Reporter)
	w.took(result)
	if err == nil {
		err = w.clear(ctx)
	}
	phase, message, err := w.ended(err)
	if phase == fleetv1.PhaseRolledBack { // the content's binaries are back, which is the opposite of the order
		phase = fleetv1.PhaseFailed
	}
	return phase, message, err
}

// wanted returns the hash of a component in the content; "" if the content has no such component.
func (w *order) wanted(name string) string {
	for _, p := range w.doc.Node.Spec.Kubernetes.Provisioners {
		if p.Name == name {
			return p.SHA256
		}
	}
	return ""
}

func (w *order) pushOptions() push.Options {
	return push.Options{Sources: w.Sources, Holder: w.holder(), KeepJournal: true, RefuseSkips: true}
}

// acknowledge records that the end of the order was reported, and lets the node forget its transaction. Until then, the
// journal keeps a later attempt from trying the same binaries again, and gives the report its ID. An earlier pod may
// have ended between its report and this step.
func (w *order) acknowledge(ctx context.Context) error {
	if w.state == nil {
		return nil
	}
	status, judged := w.state.Status, w.state.Spec.Verdict != ""
	reported := slices.Contains([]fleetv1.Phase{fleetv1.PhaseDone, fleetv1.PhaseRolledBack, fleetv1.PhaseFailed}, status.Phase)
	if !judged && !reported {
		return nil
	}
	if err := w.open(ctx); err != nil {
		return err
	}
	if err := w.conclude(ctx); err != nil {
		return err
	}
	if !reported || status.Journal == "" {
		return nil
	}
	return push.Acknowledge(ctx, w.node, status.Journal)
}

func (w *order) took(result push.NodeResult) {
	if result.Transaction != "" {
		w.journal = result.Transaction
	}
}

// ended returns the phase for the end of a push or a rollback, or the error if another attempt may end
// in another way.
func (w *order) ended(err error) (fleetv1.Phase, string, error) {
	var back *push.RolledBackError
	switch {
	case err == nil:
		return fleetv1.PhaseDone, "", nil
	case errors.As(err, &back) && back.Complete():
		return fleetv1.PhaseRolledBack, err.Error(), nil
	case errors.As(err, &back):
		return fleetv1.PhaseFailed, err.Error(), nil
	case source.Refused(err), source.Denied(err), push.IsMistake(err):
		return fleetv1.PhaseRolledBack, unchanged(err), nil
	}
	return "", "", err
}

func unchanged(err error) string { return "the node is unchanged: " + err.Error() }
