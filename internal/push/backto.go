package push

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Target names a push of a node's history to which a rollback returns.
type Target struct {
	Number int
	// Names are the components; empty: all that the push brought.
	Names []string
	// Keeper is your machine's store; nil: none.
	Keeper Keeper
}

// RollbackTo puts the files of a push of the node's history in place again, in one transaction: those that the node
// keeps, and those of the Keeper, which are sent as in a push. Command lines stay. A *TargetError means that the history
// has no such push, or that one of its files is not kept; then nothing was changed. Other errors are those of Push.
func RollbackTo(ctx context.Context, n *node.Node, doc config.Document, to Target, options Options, r ui.Reporter) (
	NodeResult, error) {
	if options.Holder == "" {
		options.Holder = plan.Holder(fmt.Sprintf("rollback --to-push %d", to.Number))
	}
	w := newWork(n, doc, options, r)
	return w.finish(w.rollbackTo(ctx, to))
}

// TargetError reports a push to which a rollback cannot return.
type TargetError struct{ text string }

func (e *TargetError) Error() string { return e.text }

func targetErrorf(format string, args ...any) error {
	return &TargetError{fmt.Sprintf(format, args...)}
}

func (w *work) rollbackTo(ctx context.Context, to Target) error {
	history, err := w.history(ctx, to.Keeper)
	if err != nil {
		return err
	}
	wanted, err := find(history, to)
	if err != nil {
		return err
	}
	w.doc.Node.Spec.Kubernetes.Provisioners = nil
	var names []string
	for _, c := range wanted {
		names = append(names, c.Name)
		w.doc.Node.Spec.Kubernetes.Provisioners = append(w.doc.Node.Spec.Kubernetes.Provisioners, w.pastSpec(c))
	}
	return w.goBack(ctx, names, func(now view, c seen) (*staged, error) {
		i := slices.IndexFunc(wanted, func(p PastComponent) bool { return samePath(p.Destination, c.spec.Destination) })
		back, err := w.decideBackTo(ctx, now, c, wanted[i], history, to)
		if err == nil && back.change == changeNone && c.state.GetService() != nil && settingsChange(wanted, now) {
			back.change = changeRestart // the service reads them when it starts
		}
		return back, err
	})
}

// find returns the components of the push to go back to.
func find(history []PastPush, to Target) (wanted []PastComponent, err error) {
	i := slices.IndexFunc(history, func(p PastPush) bool { return p.Number == to.Number })
	switch {
	case len(history) == 0:
		return nil, targetErrorf("the node's history has no push")
	case i < 0:
		return nil, targetErrorf("the node's history has no push %d; it has %d to %d: see %s", to.Number, history[0].Number,
			history[len(history)-1].Number, remedy.Command("history"))
	case history[i].Result != committed:
		return nil, targetErrorf("push %d ended as %s, so its files did not stay; choose another one: see %s", to.Number,
			ui.Words(history[i].Result), remedy.Command("history"))
	}
	for _, c := range history[i].Components {
		if c.brought && (len(to.Names) == 0 || named(to.Names, c.Name)) {
			wanted = append(wanted, c)
		}
	}
	for _, name := range to.Names {
		if !slices.ContainsFunc(wanted, func(c PastComponent) bool { return strings.EqualFold(c.Name, name) }) {
			return nil, targetErrorf("push %d brought no %s: see %s", to.Number, name, remedy.Command("history"))
		}
	}
	if !slices.ContainsFunc(wanted, func(c PastComponent) bool { return isProgram(c.Destination) }) && len(wanted) > 0 {
		wanted = append(wanted, restartedWith(history[i])...)
	}
	if len(wanted) == 0 {
		return nil, targetErrorf("push %d brought no file, but restarted services: see %s", to.Number, remedy.Command("history"))
	}
	return wanted, nil
}

// restartedWith returns the components whose services a change of settings has restarted: they read the files that it
// brought.
func restartedWith(p PastPush) (all []PastComponent) {
	for _, c := range p.Components {
		if !c.brought && c.Service != "" {
			all = append(all, c)
		}
	}
	return all
}

// decideBackTo plans the return to the file of a past push, wherever it is kept.
func (w *work) decideBackTo(ctx context.Context, now view, c seen, past PastComponent, history []PastPush, to Target) (
	*staged, error) {
	if !past.brought {
		c.result.SHA256, c.result.Version.After = c.state.GetSha256(), c.state.GetVersion()
		return &staged{difference: &difference{seen: c}}, nil
	}
	c.result.SHA256, c.result.Version.After = past.SHA256, past.Version.After
	switch {
	case c.state.GetFolder() || c.state.GetError() != "":
		return nil, c.usable(source.Binary{Path: c.spec.Destination})
	case c.state.GetSha256() == past.SHA256:
		c.addMessage(fmt.Sprintf("its file is that of push %d", to.Number))
		return &staged{difference: &difference{seen: c}}, nil
	case c.state.GetPreviousSha256() == past.SHA256:
		return c.decideRollback()
	}
	binary, err := w.fromKeeper(ctx, past.SHA256, to.Keeper)
	if err != nil {
		w.reporter.Debug("%s: %v", c.spec.Name, err)
		return nil, c.notKept(past, history, to)
	}
	if err := binary.For(now.facts.GetArchitecture()); err != nil {
		return nil, err
	}
	back := &staged{difference: &difference{seen: c, binary: binary, change: changeBinary},
		path: layout.Staged(c.spec.Destination, past.SHA256), sha256: past.SHA256}
	if !c.state.GetExists() {
		back.change = changeCreate
	}
	return back, nil
}

// fromKeeper returns the file of your machine's store with this hash. The error is fault.ErrNotExist without a store.
func (w *work) fromKeeper(ctx context.Context, sha256 string, keeper Keeper) (source.Binary, error) {
	if keeper == nil {
		return source.Binary{}, fault.ErrNotExist
	}
	path, err := keeper.Path(ctx, sha256)
	if err != nil {
		return source.Binary{}, err
	}
	return w.options.Sources.Obtain(ctx, source.Request{URL: path, SHA256: sha256}, w.reporter)
}

// notKept returns the error for a file that is kept nowhere. It names the pushes whose file of this component is kept.
func (c seen) notKept(past PastComponent, history []PastPush, to Target) error {
	var kept []string
	known := map[string]bool{past.SHA256: true}
	for _, push := range slices.Backward(history) {
		for _, other := range push.Components {
			if push.Result != committed || !other.brought || other.Kept == KeptNowhere || known[other.SHA256] ||
				!samePath(other.Destination, past.Destination) {
				continue
			}
			known[other.SHA256] = true
			kept = append(kept, fmt.Sprintf("that of push %d (%s, %s)", push.Number, ui.Hash(other.SHA256), other.Kept.text()))
		}
	}
	text := "no file of another push is kept"
	if len(kept) > 0 {
		text = "kept are " + strings.Join(kept, " and ")
	}
	again := "build it again and push it with " + remedy.Command("push", c.spec.Name+"=FILE")
	if !isProgram(past.Destination) {
		again = withoutSettings(history, to)
	}
	return targetErrorf("the file of push %d (%s) is kept neither on the node nor in the cache of this machine; %s; %s",
		to.Number, ui.Hash(past.SHA256), text, again)
}

// withoutSettings returns the remedy for a configuration that is not kept: a push brings programs alone.
func withoutSettings(history []PastPush, to Target) string {
	words := []string{"rollback"}
	for _, push := range history {
		for _, c := range push.Components {
			if push.Number == to.Number && c.brought && isProgram(c.Destination) {
				words = append(words, c.Name)
			}
		}
	}
	const remedyAlone = "put a copy of yours in its place"
	if len(words) == 1 {
		return remedyAlone
	}
	return remedyAlone + ", or return without it: " + remedy.Command(append(words, "--to-push", strconv.Itoa(to.Number))...)
}

// isProgram reports whether a path is that of a program, and not of a configuration that went with one.
func isProgram(path string) bool { return strings.HasSuffix(strings.ToLower(path), ".exe") }

// settingsChange reports whether a file of the past push that is not a program, such as containerd's configuration,
// differs from the present one.
func settingsChange(wanted []PastComponent, now view) bool {
	return slices.ContainsFunc(now.components, func(c seen) bool {
		return !isProgram(c.spec.Destination) &&
			slices.ContainsFunc(wanted, func(p PastComponent) bool {
				return samePath(p.Destination, c.spec.Destination) && p.SHA256 != c.state.GetSha256()
			})
	})
}
