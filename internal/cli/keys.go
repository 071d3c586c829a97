package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/push/live"
	"github.com/swdt-dev/swdt/internal/push/watch"
	"github.com/swdt-dev/swdt/internal/ui"
)

const keyHelp = "; r push again, b roll back, l log lines, q quit"

// keys handles the keys that the user types while swdt watches. The terminal delivers
// each key at once and does not show it; Ctrl-C and the output stay as they are.
type keys struct {
	session  *session
	remotes  []*live.Remote
	terminal *os.File
	commands chan watch.Command
	active   atomic.Bool
	restore  func()
	stop     context.CancelCauseFunc // ends the watch
	working  sync.WaitGroup
	cancel   context.CancelFunc
}

// newKeys returns nil if no user can type: see prompter.
func (a *app) newKeys(s *session, remotes []*live.Remote, stop context.CancelCauseFunc) *keys {
	terminal, ok := a.streams.In.(*os.File)
	if !ok || a.global.logs != "text" || a.global.readsStdin() || !isTerminal(terminal) || !isTerminal(a.streams.Err) {
		return nil
	}
	return &keys{session: s, remotes: remotes, terminal: terminal, commands: make(chan watch.Command), stop: stop}
}

// begin returns a function that starts to read keys. The caller calls this function after
// swdt has tried to reach every node, since the terminal is for questions until then.
func (k *keys) begin(ctx context.Context) func() {
	ctx, k.cancel = context.WithCancel(ctx)
	return func() {
		before, err := term.GetState(int(k.terminal.Fd()))
		if err == nil {
			err = ui.KeyAtATime(int(k.terminal.Fd()))
		}
		if err != nil {
			k.session.story.Node("").Debug("read keys: %v", err)
			return
		}
		k.active.Store(true)
		k.restore = sync.OnceFunc(func() { _ = term.Restore(int(k.terminal.Fd()), before) })
		// Restore the terminal at once, since the second Ctrl-C may end the process.
		context.AfterFunc(ctx, k.restore)
		go k.read(ctx)
	}
}

// end restores the terminal. A pending read goes on until the process ends.
func (k *keys) end() {
	if k == nil {
		return
	}
	k.cancel()
	if k.restore != nil {
		k.restore()
	}
	k.working.Wait()
}

func (k *keys) read(ctx context.Context) {
	buffer := make([]byte, 64)
	for {
		n, err := k.terminal.Read(buffer)
		if err != nil || ctx.Err() != nil {
			return
		}
		for _, key := range strings.ToLower(string(buffer[:n])) {
			k.press(ctx, key)
		}
	}
}

func (k *keys) press(ctx context.Context, key rune) {
	const ctrlC, ctrlD = 3, 4
	switch key {
	case 'r':
		k.send(ctx, watch.Again)
	case 'b':
		k.send(ctx, watch.RollBack)
	case 'q', ctrlD:
		k.send(ctx, watch.Quit)
	case 'l':
		k.working.Go(func() { k.showLogs(ctx) })
	case ctrlC: // some terminals do not turn Ctrl-C into a signal
		k.stop(&InterruptedError{Signal: "Ctrl-C"})
	}
}

func (k *keys) send(ctx context.Context, command watch.Command) {
	select {
	case k.commands <- command:
	case <-ctx.Done():
	}
}

func (k *keys) showLogs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, remote := range k.remotes {
		lines := remote.Logs(ctx)
		if ctx.Err() != nil {
			return
		}
		k.session.story.Suspend(func() {
			for _, line := range lines {
				if len(k.remotes) > 1 {
					line = remote.Name() + ": " + line
				}
				fmt.Fprintln(k.session.app.streams.Err, ui.PrintableLines(line))
			}
		})
	}
}

// early returns a prompter that asks only until the keys work: from then on the
// terminal delivers keys.
func (k *keys) early(p node.Prompter) node.Prompter {
	if p == nil {
		return nil
	}
	return &earlyPrompter{p, k}
}

type earlyPrompter struct {
	node.Prompter
	keys *keys
}

var errNoQuestions = errors.New("swdt has a question, but the terminal is in use: start swdt again")

func (p *earlyPrompter) Confirm(ctx context.Context, question string) (bool, error) {
	if p.keys.active.Load() {
		return false, errNoQuestions
	}
	return p.Prompter.Confirm(ctx, question)
}

func (p *earlyPrompter) Secret(ctx context.Context, question string) (string, error) {
	if p.keys.active.Load() {
		return "", errNoQuestions
	}
	return p.Prompter.Secret(ctx, question)
}
