package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// on is the step that makes one service log more.
type on struct {
	node *node.Node
	*subject
	options Options
	next    *on // the step after this one; nil: there is none
}

func (s *on) Name() string { return s.name + " log" }

// decision is the result of comparing one service with the wish.
type decision struct {
	is     observed
	base   logSettings // the state to restore later
	wanted logSettings // the wanted state
	entry  tracerecord.Service
	known  bool // the record of the node contains entry
}

// done reports whether nothing is left to do: the node is in the wanted state, and there is either
// no record of the service, or the record of a completed trace with the same wish.
func (d decision) done(wish tracerecord.Wish) bool {
	return d.is.equal(d.wanted) && (!d.known || d.entry.On && d.entry.Wish == wish)
}

func (s *on) Plan(ctx context.Context) (plan.Change, error) {
	d, err := s.decide(ctx, s.node)
	if errors.Is(err, fault.ErrNoService) && !s.named {
		return plan.Change{Summary: "there is no such service"}, nil
	}
	if err != nil {
		return plan.Change{}, err
	}
	wish := s.options.wish(s.name)
	switch {
	case d.done(wish) && d.known:
		return plan.Change{Summary: fmt.Sprintf("on at %s since %s, by %s", s.level(d.wanted), moment(d.entry.Since),
			d.entry.By)}, nil
	case d.done(wish):
		return plan.Change{Summary: "the service logs at " + s.level(d.is.logSettings) +
			" already, but not by swdt trace"}, nil
	case d.is.equal(d.wanted):
		return plan.Change{Needed: true, Summary: "finish an interrupted command: the service logs at " + s.level(d.wanted) +
			" already"}, nil
	}
	return plan.Change{Needed: true, Summary: s.summary(d, wish), Detail: detail(d)}, nil
}

func (s *on) summary(d decision, wish tracerecord.Wish) string {
	text := fmt.Sprintf("log at %s instead of %s", s.level(d.wanted), s.level(d.is.logSettings))
	if wish.OTLP != "" {
		text += ", send spans to " + wish.OTLP
	}
	if running(d.is) {
		text += ", restart " + s.name
	}
	return text
}

// detail returns the exact changes on the node.
func detail(d decision) string {
	var parts []string
	if d.is.path != "" && d.is.sum() != d.wanted.sum() {
		parts = append(parts, "write "+d.is.path)
	}
	if d.is.CommandLine != d.wanted.CommandLine {
		parts = append(parts, d.is.CommandLine+" → "+d.wanted.CommandLine)
	}
	return strings.Join(parts, "; ")
}

// decide compares the service on the node with the wished log level, and returns the present state,
// the state to restore later, and the wanted state.
func (s *on) decide(ctx context.Context, n *node.Node) (decision, error) {
	is, err := s.look(ctx, n)
	if err != nil {
		return decision{}, err
	}
	r, err := load(ctx, n)
	if err != nil {
		return decision{}, err
	}
	d := decision{is: is, base: is.logSettings}
	d.entry, d.known = r.Services[s.name]
	wish := s.options.wish(s.name)
	version := ""
	marked := windowstext.Detect(is.Config) == windowstext.MarkedUTF8 // which not every containerd reads
	if wish.OTLP != "" || d.entry.Wish.OTLP != "" || marked {
		if version, err = runtimeVersion(ctx, n); err != nil {
			return decision{}, err
		}
	}
	if d.known {
		var at place
		switch d.entry, at = where(d.entry, is.logSettings); at {
		case with:
			if d.base, err = before(ctx, n, d.entry); err != nil {
				return decision{}, err
			}
		case without: // the change was never made, or was rolled back
			d.known = false
			// An interrupted `off` has left newConfig on a node that had no configuration file.
			if config := d.entry.Config; is.stopgap() && config != nil && config.Before == "" {
				d.base.Config, d.base.Exists = nil, false
			}
		case halfway, between:
			if !s.options.Force {
				return decision{}, s.changedError(ctx, n, d.entry, is, version)
			}
			d.known = false // `off` will restore the present state
		}
	}
	d.wanted, err = s.withLevel(d.base, wish, version)
	return d, err
}

func runtimeVersion(ctx context.Context, n *node.Node) (string, error) {
	reply, err := n.Network.CRIVersion(ctx, &agentv1.CRIVersionRequest{Pipe: v1alpha1.ContainerdPipe})
	if err != nil {
		return "", fmt.Errorf("ask containerd for its version, on which what it reads depends: %w", err)
	}
	return reply.GetRuntimeVersion(), nil
}

func (s *on) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	d, err := s.decide(ctx, s.node)
	if err != nil || d.done(s.options.wish(s.name)) { // the step before may have changed this service too
		return plan.Outcome{}, err
	}
	if other := s.companion(ctx, s.node); other != nil && !d.is.equal(d.wanted) {
		err := switchOn(ctx, s.node, []*turn{{on: s, decision: d}, other}, r)
		if !blames(err, other.name) {
			return plan.Outcome{}, err
		}
		r.Debug("%v; changing %s alone", err, s.name)
	}
	return plan.Outcome{}, switchOn(ctx, s.node, []*turn{{on: s, decision: d}}, r)
}

// turn is a service that must log more, with the decision about the service.
type turn struct {
	*on
	decision
	written tracerecord.Service
}

// companion returns the turn of the next step if the next step's service must be restarted too, so
// that one transaction restarts each service once. It returns nil if there is no next step, if that
// service needs no restart, or if its state cannot be determined. In the last case, the next step
// itself reports the cause.
func (s *on) companion(ctx context.Context, n *node.Node) *turn {
	if s.next == nil {
		return nil
	}
	d, err := s.next.decide(ctx, n)
	if err != nil || d.is.equal(d.wanted) || !running(d.is) {
		return nil
	}
	return &turn{on: s.next, decision: d}
}

// switchOn makes services log at their wished levels. It changes all of them in one
// transaction.
func switchOn(ctx context.Context, n *node.Node, turns []*turn, r ui.Reporter) error {
	var changes []change
	for _, t := range turns {
		if err := makeLogFolder(ctx, n, t.wanted.CommandLine); err != nil {
			return err
		}
		var err error
		if t.written, err = t.write(ctx, n, t.decision); err != nil {
			return err
		}
		if !t.is.equal(t.wanted) {
			changes = append(changes, change{subject: t.subject, from: t.is, to: t.wanted, options: t.options})
		}
	}
	if err := run(ctx, n, changes, r); err != nil {
		for _, t := range turns {
			err = t.takeBack(ctx, n, t.decision, t.written, err)
		}
		return err
	}
	for _, t := range turns {
		if err := tidy(ctx, n, t.written); err != nil {
			return err
		}
		t.written.On, t.written.Earlier = true, nil
		if err := update(ctx, n, func(r tracerecord.Record) { r.Services[t.name] = t.written }); err != nil {
			return err
		}
	}
	return nil
}

// write keeps a copy of the configuration file to restore later, and records the change that is
// about to be made.
func (s *on) write(ctx context.Context, n *node.Node, d decision) (tracerecord.Service, error) {
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return tracerecord.Service{}, fmt.Errorf("read the node's clock: %w", err)
	}
	by, _, _ := strings.Cut(s.options.Holder, ",") // without the process ID, which is of no use later
	entry := tracerecord.Service{
		Wish: s.options.wish(s.name), Since: facts.GetTime().AsTime().Truncate(time.Second), By: by,
		CommandLine: tracerecord.Change{Before: d.base.CommandLine, After: d.wanted.CommandLine},
	}
	if d.is.path != "" {
		entry.Config = &tracerecord.File{
			Path: d.is.path, Kept: keptAt(s.name),
			Change: tracerecord.Change{Before: d.base.sum(), After: d.wanted.sum()},
		}
	}
	if d.known && !d.is.equal(d.wanted) {
		earlier := d.entry
		earlier.Earlier = nil
		entry.Earlier = &earlier
	}
	if entry.Config != nil && !d.known && d.base.Exists {
		if err := smallfile.Replace(ctx, n, entry.Config.Kept, d.base.Config, ""); err != nil {
			return entry, fmt.Errorf("keep %s: %w", d.is.path, err)
		}
	}
	return entry, update(ctx, n, func(r tracerecord.Record) { r.Services[s.name] = entry })
}

// takeBack returns cause, the error of a failed change. If the node is known to be unchanged,
// takeBack also restores the previous record.
func (s *on) takeBack(ctx context.Context, n *node.Node, d decision, entry tracerecord.Service, cause error) error {
	if !unchanged(cause) || ctx.Err() != nil {
		return cause // the next command determines the state
	}
	var err error
	if d.known {
		err = update(ctx, n, func(r tracerecord.Record) { r.Services[s.name] = d.entry })
	} else {
		err = s.forget(ctx, n, entry)
	}
	return errors.Join(cause, err)
}

// moment formats a time of the node's clock for people.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
