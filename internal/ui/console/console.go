// Package console is your terminal for the time in which a program of a node uses it. Open makes the
// terminal raw, so that each key goes to the node, and Close puts it back as it was.
//
//   - console.go: opening, closing, the size
//   - keys.go: the keyboard, and the keys that end a session whose node does not answer
//   - filter.go, sequence.go: which control sequences of the node reach the terminal
//   - undo.go: what puts the screen's modes back
//   - raw_*.go, resized_*.go: the terminals of each operating system
//
// A node decides which bytes it sends. They can draw, which is what a terminal is for, but they
// reach nothing beyond the window: not the clipboard, a printer, files or the keyboard.
package console

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Size is the size of a terminal in characters.
type Size struct{ Columns, Rows int }

// Files are a terminal: In has its keyboard and Out its screen. Usually they are the same.
type Files struct{ In, Out *os.File }

// Console is an open terminal.
type Console struct {
	out     *os.File
	ctx     context.Context
	end     context.CancelCauseFunc
	keys    *keyboard
	screen  *screen
	sizes   chan Size
	restore func()
	working sync.WaitGroup
}

// Open makes the terminal raw. The returned context ends if ctx ends, or if the person or a signal ends
// the session; the terminal is restored then at once. The caller must call Close.
func Open(ctx context.Context, files Files) (context.Context, *Console, error) {
	ctx, end := context.WithCancelCause(ctx)
	c := &Console{out: files.Out, ctx: ctx, end: end, sizes: make(chan Size, 1)}
	c.keys = newKeyboard(keysOf(files.In), end)
	c.screen = &screen{to: files.Out, filter: &filter{}}
	signals := catch()
	unraw, err := makeRaw(files.In, files.Out)
	if err != nil {
		end(nil)
		c.watch(signals) // which releases the signals and returns, since the context has ended
		return nil, nil, fmt.Errorf("make the terminal raw: %w", err)
	}
	c.restore = sync.OnceFunc(func() {
		unraw() // first, since a write to a stopped terminal would wait
		c.screen.close()
	})
	context.AfterFunc(ctx, c.restore) // at once: the process may end soon after a signal
	go c.guarded(c.keys.read)
	c.working.Go(func() { c.guarded(func() { c.watch(signals) }) })
	return ctx, c, nil
}

// guarded calls f. If f panics, guarded restores the terminal before the process ends.
func (c *Console) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			c.restore()
			panic(p)
		}
	}()
	f()
}

// Close restores the terminal. A pending read of a key goes on until the process ends.
func (c *Console) Close() {
	c.end(nil)
	c.restore()
	c.working.Wait()
}

// Keys returns a reader of the bytes of the keys that are pressed, until ctx ends.
func (c *Console) Keys(ctx context.Context) io.Reader { return keysUntil{c.keys, ctx} }

// Screen returns the writer of the node's output.
func (c *Console) Screen() io.Writer { return c.screen }

// Resized returns a channel that gets each further size. If sizes are not received, only the last one
// is kept.
func (c *Console) Resized() <-chan Size { return c.sizes }

// mostCells is the largest number of columns, and of rows, that a node gets.
const mostCells = 1000

// Size returns the present size. A terminal that does not know its size has 80 columns and 24 rows.
func (c *Console) Size() Size {
	columns, rows, err := term.GetSize(int(c.out.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return Size{80, 24}
	}
	return Size{min(columns, mostCells), min(rows, mostCells)}
}

// resized passes on the present size if it is another one than before.
func (c *Console) resized(before Size) Size {
	now := c.Size()
	if now == before {
		return now
	}
	select {
	case <-c.sizes: // a size that was not received
	default:
	}
	c.sizes <- now // has room, since only this goroutine sends
	return now
}
