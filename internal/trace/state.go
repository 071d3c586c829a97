package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/containerdconfig"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/smallfile"
	"github.com/swdt-dev/swdt/internal/trace/record"
)

// place is where a service stands between without and with the trace.
type place int

const (
	without place = iota // as before
	with                 // as swdt trace on left it
	halfway              // one thing is as before and the other as after: a transaction does not leave it so
	between              // somebody else changed something
)

// where compares what stands on the node with what is written down, and returns
// the entry that it is about: the earlier one where a change from one level to
// another never came to be. A transaction leaves all of the one or all of the
// other.
func where(entry record.Service, is standing) (record.Service, place) {
	switch {
	case matches(entry, is, func(c record.Change) string { return c.After }):
		return entry, with
	case entry.Earlier != nil && matches(*entry.Earlier, is, func(c record.Change) string { return c.After }):
		return *entry.Earlier, with
	case matches(entry, is, func(c record.Change) string { return c.Before }):
		return entry, without
	case entry.Config != nil && entry.Config.Before == "" && is.CommandLine == entry.CommandLine.Before && is.stopgap():
		return entry, without
	case isHalfway(entry, is):
		return entry, halfway
	}
	return entry, between
}

// isHalfway is what is left where services are not restarted (Options.NoRestart)
// and that was interrupted.
func isHalfway(entry record.Service, is standing) bool {
	if entry.Config == nil {
		return false
	}
	lines, sums := entry.CommandLine, entry.Config.Change
	return (is.CommandLine == lines.Before || is.CommandLine == lines.After) && (is.sum() == sums.Before || is.sum() == sums.After)
}

func matches(entry record.Service, is standing, side func(record.Change) string) bool {
	return is.CommandLine == side(entry.CommandLine) && (entry.Config == nil || is.sum() == side(entry.Config.Change))
}

// keptAt is where a service's configuration file of before is kept.
func keptAt(service string) string { return layout.Trace + `\` + service + `-before` }

// before is what stood there before the trace, from what is kept of it.
func before(ctx context.Context, n *node.Node, entry record.Service) (standing, error) {
	s := standing{CommandLine: entry.CommandLine.Before}
	if entry.Config == nil || entry.Config.Before == "" {
		return s, nil
	}
	content, err := smallfile.Read(ctx, n, entry.Config.Kept)
	if errors.Is(err, host.ErrNotExist) {
		return s, fmt.Errorf("the copy of %s from before the trace is gone (%s): write the file anew, and remove %s", entry.Config.Path, entry.Config.Kept, layout.TraceRecord)
	}
	if err != nil {
		return s, err
	}
	if record.Sum(content, true) != entry.Config.Before {
		return s, fmt.Errorf("the copy of %s from before the trace was changed (%s): write the file anew, and remove %s", entry.Config.Path, entry.Config.Kept, layout.TraceRecord)
	}
	s.Config, s.Exists = content, true
	return s, nil
}

// ChangedError is a service that somebody changed while it was traced.
type ChangedError struct {
	Service     string
	Differences []string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s is not as swdt trace left it:\n  %s\nput that back, or use --force: `off --force` restores what was there before the trace and leaves a changed file beside it as *.swdt-old, `on --force` takes the change for what is to be restored",
		e.Service, strings.Join(e.Differences, "\n  "))
}

// changedError says what is not as the trace left it. What it left is not kept,
// and made again to compare.
func (s *subject) changedError(ctx context.Context, n *node.Node, entry record.Service, is seen, version string) error {
	changed := &ChangedError{Service: s.name}
	if is.CommandLine != entry.CommandLine.After {
		changed.Differences = append(changed.Differences, fmt.Sprintf("command line: %s → %s", entry.CommandLine.After, is.CommandLine))
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
		if left, err := s.talk(was, entry.Wish, version); err == nil {
			found = containerdconfig.Differences(left.Config, is.Config)
		}
	}
	if len(found) == 0 {
		found = []string{"it says the same in other words"}
	}
	for _, difference := range found {
		changed.Differences = append(changed.Differences, is.path+": "+difference)
	}
	return changed
}

// update changes the record on the node; it is on the disk when this returns.
func update(ctx context.Context, n *node.Node, change func(record.Record)) error {
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
		return fmt.Errorf("write down what swdt trace changes: %w", err)
	}
	return nil
}

// forget removes what is kept of a service, the record of it last. What stands
// there is what stood there before.
func (s *subject) forget(ctx context.Context, n *node.Node, entry record.Service) error {
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
	return update(ctx, n, func(r record.Record) { delete(r.Services, s.name) })
}

// removeStopgap removes the configuration file that there was none of before: a
// transaction replaces files and removes none.
func removeStopgap(ctx context.Context, n *node.Node, entry record.Service) error {
	if entry.Config.Before != "" {
		return nil
	}
	content, there, err := readFile(ctx, n, entry.Config.Path)
	if err != nil || !there || !(standing{Config: content, Exists: true}).stopgap() {
		return err
	}
	return smallfile.Remove(ctx, n, entry.Config.Path)
}
