package livetable

import (
	"context"
	"errors"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Keys reads the keys that a person types at a live table. The terminal delivers each key
// immediately and does not show it; Ctrl-C remains a signal on systems that have signals.
// A nil *Keys reads nothing.
type Keys struct {
	terminal *os.File
	view     *View
	ctx      context.Context
	stop     context.CancelCauseFunc // cancels the context of the table's command
	options  KeyOptions
	redraw   func()

	once    sync.Once
	mutex   sync.Mutex
	restore func()
	ended   bool
}

// KeyOptions connect the keys to the command that shows the table.
type KeyOptions struct {
	// Quit becomes the cause of the command's context when the person presses q, which ends the
	// context.
	Quit error
	// Begun is called when the Keys begin to read the terminal. After that, the command must not
	// ask questions on the terminal.
	Begun func()
}

// NewKeys returns the keys of a table that view sorts and filters. It also returns a context
// that the key q ends. The caller must call End.
func NewKeys(ctx context.Context, terminal *os.File, view *View, o KeyOptions) (context.Context, *Keys) {
	ctx, stop := context.WithCancelCause(ctx)
	return ctx, &Keys{terminal: terminal, view: view, ctx: ctx, stop: stop, options: o}
}

// View returns the view that the keys change; nil without keys.
func (k *Keys) View() *View {
	if k == nil {
		return nil
	}
	return k.view
}

// Begin starts reading keys. It is called when the first table is drawn, since questions
// may use the terminal until then; later calls do nothing.
func (k *Keys) Begin(redraw func()) {
	if k == nil {
		return
	}
	k.once.Do(func() {
		k.mutex.Lock()
		defer k.mutex.Unlock()
		before, err := term.GetState(int(k.terminal.Fd()))
		if err != nil || k.ended || k.ctx.Err() != nil {
			return
		}
		if err := ui.KeyAtATime(int(k.terminal.Fd())); err != nil {
			return
		}
		k.options.Begun()
		k.redraw = redraw
		k.restore = sync.OnceFunc(func() { _ = term.Restore(int(k.terminal.Fd()), before) })
		// Restore the terminal as soon as ctx ends: a second Ctrl-C may end the process at
		// once.
		context.AfterFunc(k.ctx, k.restore)
		go k.read()
	})
}

// End restores the terminal. A pending read continues until the process ends.
func (k *Keys) End() {
	if k == nil {
		return
	}
	k.stop(nil)
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.ended = true
	k.view.End()
	if k.restore != nil {
		k.restore()
	}
}

// Quit returns the error of a command that the key q has ended; nil if q was not pressed.
func (k *Keys) Quit() error {
	if k == nil {
		return nil
	}
	if errors.Is(context.Cause(k.ctx), k.options.Quit) {
		return k.options.Quit
	}
	return nil
}

func (k *Keys) read() {
	defer func() {
		if p := recover(); p != nil {
			k.restore()
			panic(p)
		}
	}()
	buffer := make([]byte, 64)
	for {
		n, err := k.terminal.Read(buffer)
		if err != nil || k.ctx.Err() != nil {
			return
		}
		if !k.handle(buffer[:n]) {
			return
		}
	}
}

// handle handles the typed keys, and reports whether to read more.
func (k *Keys) handle(input []byte) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.ended {
		return false
	}
	if k.view.Press(input) {
		k.stop(k.options.Quit)
		return false
	}
	k.redraw()
	return true
}
