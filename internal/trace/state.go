package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/containerdconfig"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// place is the state of a service relative to its trace.
type place int

const (
	without place = iota // as before the trace
	with                 // as `swdt trace on` left it
	// halfway: of the file and the command line, one is as before the trace and the other is not. A
	// transaction never leaves this state.
	halfway
	// between: something other than swdt trace has changed the service.
	between
)

// where compares the state on the node with the record. It also returns the entry that applies to
// this state: the earlier entry if a change from one level to another never took effect, otherwise
// the given entry. A transaction leaves either the whole old state or the whole new one.
func where(entry tracerecord.Service, is logSettings) (tracerecord.Service, place) {
	switch {
	case matches(entry, is, func(c tracerecord.Change) string { return c.After }):
		return entry, with
	case entry.Earlier != nil && matches(*entry.Earlier, is, func(c tracerecord.Change) string { return c.After }):
		return *entry.Earlier, with
	case matches(entry, is, func(c tracerecord.Change) string { return c.Before }):
		return entry, without
	case entry.Config != nil && entry.Config.Before == "" && is.CommandLine == entry.CommandLine.Before && is.stopgap():
		return entry, without
	case isHalfway(entry, is):
		return entry, halfway
	}
	return entry, between
}

// isHalfway reports whether the file and the command line are each in one of their two recorded
// states. The caller has already excluded that both are in the state before the change, and that
// both are in the state after the change. So one is in the state before the change, and the other
// is in the state after. An interrupted restore without restarts (Options.NoRestart) leaves a
// service like this.
func isHalfway(entry tracerecord.Service, is logSettings) bool {
	if entry.Config == nil {
		return false
	}
	lines, sums := entry.CommandLine, entry.Config.Change
	return (is.CommandLine == lines.Before || is.CommandLine == lines.After) &&
		(is.sum() == sums.Before || is.sum() == sums.After)
}

func matches(entry tracerecord.Service, is logSettings, side func(tracerecord.Change) string) bool {
	return is.CommandLine == side(entry.CommandLine) && (entry.Config == nil || is.sum() == side(entry.Config.Change))
}

// keptAt returns the path of the copy of a service's previous configuration file.
func keptAt(service string) string { return layout.Trace + `\` + service + `-before` }

// before returns the state before the trace, with the configuration from the kept copy.
func before(ctx context.Context, n *node.Node, entry tracerecord.Service) (logSettings, error) {
	s := logSettings{CommandLine: entry.CommandLine.Before}
	if entry.Config == nil || entry.Config.Before == "" {
		return s, nil
	}
	content, err := smallfile.Read(ctx, n, entry.Config.Kept)
	if errors.Is(err, fault.ErrNotExist) {
		return s, fmt.Errorf("the copy of %s from before the trace is gone (%s): write the file anew, and remove %s",
			entry.Config.Path, entry.Config.Kept, layout.TraceRecord)
	}
	if err != nil {
		return s, err
	}
	if tracerecord.Sum(content, true) != entry.Config.Before {
		return s, fmt.Errorf("the copy of %s from before the trace was changed (%s): "+
			"write the file anew, and remove %s", entry.Config.Path, entry.Config.Kept, layout.TraceRecord)
	}
	s.Config, s.Exists = content, true
	return s, nil
}

// ChangedError reports a service that was changed while it was traced.
type ChangedError struct {
	Service     string
	Differences []string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s is not as swdt trace left it:\n  %s\nundo these changes, or use --force: `off --force` "+
		"restores the settings from before the trace and keeps a changed file as *.swdt-old; `on --force` "+
		"keeps the changes and restores them at the end of the trace",
		e.Service, strings.Join(e.Differences, "\n  "))
}

// changedError returns an error with the differences between the present state and the state that
// the trace left. No copy of the latter state exists, so changedError computes that state again.
func (s *subject) changedError(ctx context.Context, n *node.Node, entry tracerecord.Service, is observed,
	version string) error {
	changed := &ChangedError{Service: s.name}
	if is.CommandLine != entry.CommandLine.After {
		changed.Differences = append(changed.Differences, fmt.Sprintf("command line: %s → %s", entry.CommandLine.After,
			is.CommandLine))
	}
	if entry.Config == nil || is.sum() == entry.Config.After {
		return changed
	}
	if !is.Exists {
		changed.Differences = append(changed.Differences, is.path+" is gone")
		return changed
	}
	found := []string{"it was rewritten"}
	if was, err := before(ctx, n, entry); err == nil {
		if left, err := s.withLevel(was, entry.Wish, version); err == nil {
			found = containerdconfig.Differences(left.Config, is.Config)
		}
	}
	if len(found) == 0 {
		found = []string{"it was rewritten with the same settings"}
	}
	for _, difference := range found {
		changed.Differences = append(changed.Differences, is.path+": "+difference)
	}
	return changed
}

// update changes the record on the node. When update returns, the node has written the record to
// its disk.
func update(ctx context.Context, n *node.Node, change func(tracerecord.Record)) error {
	r, err := load(ctx, n)
	if err != nil {
		return err
	}
	change(r)
	if len(r.Services) == 0 {
		return smallfile.Remove(ctx, n, layout.TraceRecord)
	}
	content, err := r.Encode()
	if err != nil {
		return err
	}
	if err := smallfile.Replace(ctx, n, layout.TraceRecord, content, ""); err != nil {
		return fmt.Errorf("store the record of swdt trace on the node: %w", err)
	}
	return nil
}

// forget removes everything that the trace has stored about a service, the record last. The
// node must already have the state from before the trace.
func (s *subject) forget(ctx context.Context, n *node.Node, entry tracerecord.Service) error {
	if entry.Config != nil {
		if err := removeStopgap(ctx, n, entry); err != nil {
			return err
		}
		if err := tidy(ctx, n, entry); err != nil {
			return err
		}
		if err := smallfile.Remove(ctx, n, entry.Config.Kept); err != nil {
			return err
		}
	}
	return update(ctx, n, func(r tracerecord.Record) { delete(r.Services, s.name) })
}

// removeStopgap removes newConfig if there was no configuration file before the trace. The
// transaction that ended the trace has left newConfig, since a transaction cannot remove files.
func removeStopgap(ctx context.Context, n *node.Node, entry tracerecord.Service) error {
	if entry.Config.Before != "" {
		return nil
	}
	content, there, err := readFile(ctx, n, entry.Config.Path)
	if err != nil || !there || !(logSettings{Config: content, Exists: true}).stopgap() {
		return err
	}
	return smallfile.Remove(ctx, n, entry.Config.Path)
}
