package settingchange

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// NothingToUndoError reports that the node has no change of files that can be taken back.
type NothingToUndoError struct {
	Program kubesettings.Program
	Why     string
}

func (e *NothingToUndoError) Error() string {
	return fmt.Sprintf("put the settings of %s back: %s; `swdt history` lists what swdt has changed", e.Program, e.Why)
}

// Undo returns the change that puts back the files which the last change of the program's settings has replaced, byte for
// byte. The node then keeps the present ones, so that a second undo puts these back. A change that has changed the command
// line too is refused, and so are files with which the program would end.
func (s *Settings) Undo(ctx context.Context, n *node.Node) (*Plan, error) {
	p := &Plan{editing: s.begin()}
	last, replaced, err := p.lastChange(ctx, n)
	if err != nil {
		return nil, err
	}
	if last.ChangedCommandLine(string(p.Program)) {
		return nil, p.nothing("push %d changed its command line too, and the node keeps the files alone; change both back with %s or %s",
			last.Number, remedy.Command(string(p.Program), "config", "set"), remedy.Command(string(p.Program), "config", "unset"))
	}
	for _, r := range replaced {
		if err := ownedByAdministrators(ctx, n, layout.Previous(r.Path)); err != nil {
			return nil, err
		}
		r.after = r.before
		p.Changes = append(p.Changes, Change{Name: "the file", Before: "the present one", After: "the one before the last change",
			Where: r.Path})
	}
	return p, p.check()
}

// replacement is a text of the program that the last change has replaced.
type replacement struct {
	*draft
	before []byte
}

// lastChange returns the last change of the program's settings, and the texts that it has replaced, with what they were. The
// error is a *NothingToUndoError if there was none, or if a text was changed since.
func (e *editing) lastChange(ctx context.Context, n *node.Node) (last push.PastPush, all []replacement, err error) {
	history, err := push.History(ctx, n, config.Document{}, nil, nil)
	if err != nil {
		return last, nil, err
	}
	i := len(history) - 1
	for i >= 0 && !e.isChange(history[i]) {
		i--
	}
	if i < 0 {
		return last, nil, e.nothing("the node's history has no change of its files")
	}
	last = history[i]
	for _, file := range last.Components {
		if file.Service != "" {
			continue
		}
		r := replacement{draft: e.of(file.Destination)}
		if r.draft == nil || tracerecord.Sum(r.Content, true) != file.SHA256 {
			return last, nil, e.nothing("%s was changed since push %d", file.Destination, last.Number)
		}
		r.before, err = smallfile.Read(ctx, n, layout.Previous(r.Path))
		if err != nil && !errors.Is(err, fault.ErrNotExist) {
			return last, nil, err
		}
		if err != nil || tracerecord.Sum(r.before, true) != file.PreviousSHA256 {
			return last, nil, e.nothing("the node no longer keeps %s from before push %d", file.Destination, last.Number)
		}
		all = append(all, r)
	}
	return last, all, nil
}

func (e *editing) nothing(why string, args ...any) error {
	return &NothingToUndoError{Program: e.Program, Why: fmt.Sprintf(why, args...)}
}

// isChange reports whether a transaction changed files of the program, and not the program itself.
func (e *editing) isChange(p push.PastPush) bool {
	restarts := slices.ContainsFunc(p.Components, func(c push.PastComponent) bool {
		return strings.EqualFold(c.Service, string(e.Program)) && c.Action == string(push.ActionRestarted)
	})
	files := slices.ContainsFunc(p.Components, func(c push.PastComponent) bool { return c.Service == "" })
	return p.Result == "committed" && restarts && files
}

// of returns the text of a file; nil: the program does not read it.
func (e *editing) of(path string) *draft {
	for _, d := range e.drafts {
		if d.Kind != nodesettings.CommandLine && strings.EqualFold(d.Path, path) {
			return d
		}
	}
	return nil
}
