package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// prompter asks questions if stdin and stderr are a terminal. It asks one question at
// a time and hides the live lines meanwhile.
type prompter struct {
	terminal *os.File
	out      io.Writer
	story    *ui.Story
	keysWork *atomic.Bool // set while the terminal delivers single keys, so that no answer can be typed
	mutex    sync.Mutex
}

// prompter returns nil if no user can answer: stdin or stderr is not a terminal, the
// node file comes from stdin, or a program reads the progress or the result.
func (a *app) prompter(story *ui.Story) node.Prompter {
	terminal, ok := a.streams.In.(*os.File)
	forProgram := a.global.logs != "text" || !a.inText() && !isTerminal(a.streams.Out)
	if !ok || forProgram || a.global.readsStdin() || !isTerminal(terminal) || !isTerminal(a.streams.Err) {
		return nil
	}
	return &prompter{terminal: terminal, out: a.streams.Err, story: story, keysWork: a.keysWork}
}

func (p *prompter) Confirm(ctx context.Context, question string) (yes bool, err error) {
	err = p.ask(ctx, func() error {
		reader := bufio.NewReader(onlyLines{p.terminal})
		for {
			fmt.Fprintf(p.out, "%s (yes/no) ", question)
			line, err := reader.ReadString('\n')
			if err != nil {
				return fmt.Errorf("read the answer: %w", err)
			}
			switch strings.ToLower(strings.TrimSpace(line)) {
			case "yes", "y":
				yes = true
				return nil
			case "no", "n", "":
				return nil
			}
		}
	})
	return yes, err
}

func (p *prompter) Secret(ctx context.Context, question string) (secret string, err error) {
	err = p.ask(ctx, func() error {
		fmt.Fprintf(p.out, "%s: ", strings.TrimRight(question, ": "))
		typed, err := term.ReadPassword(int(p.terminal.Fd()))
		fmt.Fprintln(p.out)
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		secret = string(typed)
		return nil
	})
	return secret, err
}

// ask runs a question until it is answered or ctx ends. It restores the terminal,
// since ReadPassword turns the echo off and cannot be interrupted.
func (p *prompter) ask(ctx context.Context, question func() error) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.keysWork != nil && p.keysWork.Load() {
		return errNoQuestions
	}
	state, err := term.GetState(int(p.terminal.Fd()))
	if err != nil {
		return fmt.Errorf("ask on the terminal: %w", err)
	}
	p.story.Suspend(func() {
		answered := make(chan error, 1)
		go func() { answered <- question() }()
		select {
		case err = <-answered:
		case <-ctx.Done():
			err = errors.Join(context.Cause(ctx), term.Restore(int(p.terminal.Fd()), state))
			fmt.Fprintln(p.out)
		}
	})
	return err
}

// onlyLines reads one byte at a time, so that a buffered reader does not consume the
// input that the user types for the command after the question.
type onlyLines struct{ r io.Reader }

func (o onlyLines) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return o.r.Read(p[:1])
}
