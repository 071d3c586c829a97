package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/swdt-dev/swdt/internal/platform"
)

const (
	// longestLine is the largest length of a typed line in bytes, as in cmd.exe ("Command prompt line string limitation").
	longestLine = 8191
	// mostTyped bounds the entered bytes that no program has read. Beyond it, the terminal reads no
	// keys, so that whoever sends them has to wait.
	mostTyped = 64 << 10
)

// ErrInterrupted is the error of a read from a terminal that Ctrl-C has interrupted. Only programs
// that call Terminal.HandleInterrupts get it: Ctrl-C ends all others.
var ErrInterrupted = errors.New("interrupted by Ctrl-C")

// Terminal is a console of the machine, in the mode in which it edits and echoes lines. It knows
// Enter, Backspace, Ctrl-C and Ctrl-Z ("High-Level Console Modes": ENABLE_LINE_INPUT, ENABLE_ECHO_INPUT and
// ENABLE_PROCESSED_INPUT); it draws nothing but what programs print.
type Terminal struct {
	screen io.Writer

	mu         sync.Mutex
	size       platform.TerminalSize
	line       []byte // typed, not entered
	entered    []byte // not read yet
	interrupts int    // number of times that Ctrl-C was pressed
	changed    chan struct{}
	attached   []*keyboard
}

func newTerminal(size platform.TerminalSize, screen io.Writer) *Terminal {
	return &Terminal{size: size, screen: screen, changed: make(chan struct{})}
}

// Size returns the terminal's present size.
func (t *Terminal) Size() platform.TerminalSize {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size
}

// HandleInterrupts makes Ctrl-C interrupt reads of this process instead of ending the process.
func (t *Terminal) HandleInterrupts(p *Process) {
	if k, ok := p.Stdin.(*keyboard); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		k.handles, k.seen = true, t.interrupts
	}
}

// runOnTerminal runs a command on a terminal of its own.
func (v processesView) runOnTerminal(ctx context.Context, c platform.Command, e execution) (int, error) {
	if !c.Terminal.Size.Valid() {
		return -1, fmt.Errorf("run %s: a terminal has no %d columns and %d rows", c.Path, c.Terminal.Size.Columns,
			c.Terminal.Size.Rows)
	}
	if c.Stdout == nil {
		c.Stdout = io.Discard
	}
	in, out := newSource(c.Stdin), newSink(c.Stdout)
	defer in.close()
	defer out.close()
	t := newTerminal(c.Terminal.Size, out.writer())
	e.terminal, e.stdout, e.stderr = t, out.writer(), out.writer()
	child, err := v.p.m.execute(v.p.m.bootContext(), e)
	if err != nil {
		return -1, fmt.Errorf("run %s: %w", c.Path, err)
	}
	v.p.m.spawn(func() { t.follow(child.ctx, c.Terminal.Resized) })
	v.p.m.spawn(func() {
		t.readKeys(child.ctx, in)
		child.kill(exitKilled) // the person has hung up; this does nothing if the command has ended
	})
	select {
	case <-child.ctx.Done():
	case <-ctx.Done():
		child.kill(exitKilled)
		return -1, fmt.Errorf("run %s: %w", c.Path, ctx.Err())
	}
	if err := v.p.check(); err != nil {
		return -1, err
	}
	out.drain(ctx)
	v.p.m.mu.Lock()
	defer v.p.m.mu.Unlock()
	return int(child.exitCode), nil
}

// follow adopts each new size until ctx ends.
func (t *Terminal) follow(ctx context.Context, sizes <-chan platform.TerminalSize) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				return
			}
			if size.Valid() {
				t.mu.Lock()
				t.size = size
				t.mu.Unlock()
			}
		case <-ctx.Done():
			return
		}
	}
}

// readKeys handles keys until keys or ctx ends.
func (t *Terminal) readKeys(ctx context.Context, keys io.Reader) {
	buffer := make([]byte, 4096)
	for {
		n, err := keys.Read(buffer)
		for _, key := range buffer[:n] {
			if t.press(ctx, key) != nil {
				return
			}
		}
		if err != nil || ctx.Err() != nil {
			return
		}
	}
}

// press handles one byte of a key.
func (t *Terminal) press(ctx context.Context, key byte) error {
	const ctrlC, backspace, newline, enter, escape, erase = 3, 8, '\n', '\r', 27, 127
	switch key {
	case ctrlC:
		t.interrupt()
		return t.echo("^C\r\n")
	case enter, newline:
		if err := t.enter(ctx); err != nil {
			return err
		}
		return t.echo("\r\n")
	case backspace, erase:
		if t.erase() {
			return t.echo("\b \b")
		}
		return nil
	case escape:
		return nil
	}
	if !t.typed(key) {
		return t.echo("\a")
	}
	if key < ' ' {
		return t.echo("^" + string(rune(key+'@')))
	}
	return t.echo(string([]byte{key}))
}

func (t *Terminal) echo(text string) error {
	_, err := io.WriteString(t.screen, text)
	return err
}

// typed reports whether the line had room for the byte.
func (t *Terminal) typed(key byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.line) >= longestLine {
		return false
	}
	t.line = append(t.line, key)
	return true
}

// erase reports whether there was a character to erase.
func (t *Terminal) erase() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, size := utf8.DecodeLastRune(t.line)
	t.line = t.line[:len(t.line)-size]
	return size > 0
}

// enter passes the line on to the programs. It waits while they have too much to read.
func (t *Terminal) enter(ctx context.Context) error {
	for {
		t.mu.Lock()
		if len(t.entered) <= mostTyped {
			t.entered = append(append(t.entered, t.line...), "\r\n"...)
			t.line = nil
			t.notify()
			t.mu.Unlock()
			return nil
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// notify wakes all that wait for a change; the caller holds the lock.
func (t *Terminal) notify() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// interrupt drops the line, and ends the processes that do not handle Ctrl-C.
func (t *Terminal) interrupt() {
	t.mu.Lock()
	t.line, t.entered = nil, nil
	t.interrupts++
	t.notify()
	attached := slices.Clone(t.attached)
	t.mu.Unlock()
	for _, k := range attached {
		if !k.handlesInterrupts() {
			k.process.kill(platform.ExitInterrupted)
		}
	}
}

// attach adds a process and returns its stdin.
func (t *Terminal) attach(p *process) *keyboard {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attached = slices.DeleteFunc(t.attached, func(k *keyboard) bool { return k.process.ctx.Err() != nil })
	k := &keyboard{terminal: t, process: p, seen: t.interrupts}
	t.attached = append(t.attached, k)
	return k
}

// keyboard is a terminal as the stdin of one process. terminal.mu guards handles and seen.
type keyboard struct {
	terminal *Terminal
	process  *process
	handles  bool // the process handles Ctrl-C
	seen     int  // the interrupts that the process knows of
}

func (k *keyboard) handlesInterrupts() bool {
	k.terminal.mu.Lock()
	defer k.terminal.mu.Unlock()
	return k.handles
}

// Read returns at most one line.
func (k *keyboard) Read(p []byte) (int, error) {
	for {
		n, changed, err := k.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-changed:
		case <-k.process.ctx.Done():
			return 0, ErrKilled
		}
	}
}

// take returns what can be read now, or a channel that is closed at the next change.
func (k *keyboard) take(p []byte) (n int, changed <-chan struct{}, err error) {
	t := k.terminal
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case k.process.ctx.Err() != nil:
		return 0, nil, ErrKilled
	case k.handles && k.seen != t.interrupts:
		k.seen = t.interrupts
		return 0, nil, ErrInterrupted
	case len(t.entered) == 0:
		return 0, t.changed, nil
	}
	end := slices.Index(t.entered, '\n') + 1
	n = copy(p, t.entered[:end])
	t.entered = t.entered[n:]
	t.notify()
	return n, nil, nil
}
