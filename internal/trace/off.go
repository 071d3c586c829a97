package trace

import (
	"context"
	"errors"
	"fmt"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// off is the step that restores the state from before the trace.
type off struct {
	node *node.Node
	*subject
	options Options
	next    *off // the step after this one; nil: there is none
}

func (s *off) Name() string { return s.name + " log" }

func (s *off) Plan(ctx context.Context) (plan.Change, error) {
	entry, is, at, err := s.state(ctx, s.node)
	switch {
	case err != nil || entry == nil:
		return plan.Change{Summary: "off"}, err
	case is == nil:
		return plan.Change{Needed: true, Summary: "the service no longer exists: restore its configuration file"}, nil
	case at == without:
		return plan.Change{Needed: true, Summary: "remove the files of an interrupted command: the settings are as before"}, nil
	}
	was, err := before(ctx, s.node, *entry)
	if err != nil {
		return plan.Change{}, err
	}
	text := "restore the previous settings: log at " + s.level(was)
	if running(*is) && !s.options.NoRestart {
		text += ", restart " + s.name
	}
	return plan.Change{Needed: true, Summary: text, Detail: detail(decision{is: *is, wanted: was})}, nil
}

// state returns the record of the service and the service's state on the node. The record is nil if
// there is none; the state is nil if the service no longer exists. If the settings were changed
// after the trace was turned on, state returns a *ChangedError unless Options.Force is set.
func (s *off) state(ctx context.Context, n *node.Node) (*tracerecord.Service, *observed, place, error) {
	r, err := load(ctx, n)
	if err != nil {
		return nil, nil, 0, err
	}
	entry, known := r.Services[s.name]
	if !known {
		return nil, nil, 0, nil
	}
	is, err := s.look(ctx, n)
	if errors.Is(err, fault.ErrNoService) {
		return &entry, nil, between, nil
	}
	if err != nil {
		return nil, nil, 0, err
	}
	entry, at := where(entry, is.logSettings)
	if at == between && !s.options.Force {
		// Version 1: only a containerd 1.x has its spans set in its configuration.
		return nil, nil, at, s.changedError(ctx, n, entry, is, "1")
	}
	return &entry, &is, at, nil
}

func (s *off) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	entry, is, at, err := s.state(ctx, s.node)
	if err != nil || entry == nil {
		return plan.Outcome{}, err
	}
	if at == without {
		return plan.Outcome{}, s.forget(ctx, s.node, *entry)
	}
	was, err := before(ctx, s.node, *entry)
	if err != nil {
		return plan.Outcome{}, err
	}
	if is == nil {
		return plan.Outcome{}, s.putFileBack(ctx, s.node, *entry, was)
	}
	if s.options.NoRestart {
		return plan.Outcome{}, s.putBack(ctx, s.node, *entry, *is, was)
	}
	own := restoration{off: s, entry: *entry, change: s.change(*is, was)}
	if other := s.companion(ctx, s.node); other != nil {
		err := switchOff(ctx, s.node, []restoration{own, *other}, r)
		if !blames(err, other.name()) {
			return plan.Outcome{}, err
		}
		r.Debug("%v; changing %s alone", err, s.name)
	}
	return plan.Outcome{}, switchOff(ctx, s.node, []restoration{own}, r)
}

func (s *off) change(is observed, was logSettings) change {
	return change{subject: s.subject, from: is, to: was, options: s.options}
}

// restoration is a service and the change that restores its previous state.
type restoration struct {
	off    *off
	entry  tracerecord.Service
	change change
}

func (c restoration) name() string { return c.off.name }

// companion returns the restoration of the next step if the next step's service must be restarted
// too, so that one transaction restarts each service once. It returns nil if there is no next step,
// if that service needs no restart, or if its state cannot be determined. In the last case, the
// next step itself reports the cause.
func (s *off) companion(ctx context.Context, n *node.Node) *restoration {
	if s.next == nil {
		return nil
	}
	entry, is, at, err := s.next.state(ctx, n)
	if err != nil || entry == nil || is == nil || at == without || !running(*is) {
		return nil
	}
	was, err := before(ctx, n, *entry)
	if err != nil {
		return nil
	}
	return &restoration{off: s.next, entry: *entry, change: s.next.change(*is, was)}
}

// switchOff restores the previous states, in one transaction.
func switchOff(ctx context.Context, n *node.Node, restorations []restoration, r ui.Reporter) error {
	var changes []change
	for _, c := range restorations {
		changes = append(changes, c.change)
	}
	if err := run(ctx, n, changes, r); err != nil {
		return err
	}
	for _, c := range restorations {
		if err := c.off.forget(ctx, n, c.entry); err != nil {
			return err
		}
	}
	return nil
}

// putBack restores the configuration file and the command line. It does not restart the
// service.
func (s *off) putBack(ctx context.Context, n *node.Node, entry tracerecord.Service, is observed,
	was logSettings) error {
	if is.CommandLine != was.CommandLine {
		if _, err := n.Services.Configure(ctx, &agentv1.ServiceConfig{Name: s.name,
			CommandLine: was.CommandLine}); err != nil {
			return fmt.Errorf("put the command line of %s back: %w", s.name, err)
		}
	}
	return s.putFileBack(ctx, n, entry, was)
}

// putFileBack restores only the configuration file. A service that no longer exists needs nothing
// else.
func (s *off) putFileBack(ctx context.Context, n *node.Node, entry tracerecord.Service, was logSettings) error {
	if entry.Config == nil {
		return s.forget(ctx, n, entry)
	}
	is, there, err := readFile(ctx, n, entry.Config.Path)
	if err != nil {
		return err
	}
	switch sum := tracerecord.Sum(is, there); {
	case sum == entry.Config.Before: // nothing to do
	case sum != entry.Config.After && !s.options.Force:
		return &ChangedError{Service: s.name, Differences: []string{"the service is gone",
			entry.Config.Path + ": it was rewritten"}}
	case was.Exists:
		err = smallfile.Replace(ctx, n, entry.Config.Path, was.Config, "")
	default:
		err = smallfile.Remove(ctx, n, entry.Config.Path)
	}
	if err != nil {
		return err
	}
	return s.forget(ctx, n, entry)
}
