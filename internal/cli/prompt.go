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

	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// prompter asks on the terminal that stdin and stderr are. One question at a
// time, with the live lines out of the way.
type prompter struct {
	terminal *os.File
	out      io.Writer
	story    *ui.Story
	mutex    sync.Mutex
}

// prompter is nil where nobody could answer: stdin or stderr is no terminal, the
// node file comes from stdin, or a program reads the story or the result.
func (a *app) prompter(story *ui.Story) node.Prompter {
	terminal, ok := a.streams.In.(*os.File)
	forProgram := a.global.logs != "text" || !a.inText() && !isTerminal(a.streams.Out)
	if !ok || forProgram || a.global.readsStdin() || !isTerminal(terminal) || !isTerminal(a.streams.Err) {
		return nil
	}
	return &prompter{terminal: terminal, out: a.streams.Err, story: story}
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

// ask runs a question and gives up when ctx ends, with the terminal as it was:
// ReadPassword turns the echo off and cannot be interrupted.
func (p *prompter) ask(ctx context.Context, question func() error) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
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

// onlyLines reads one byte at a time, so that a buffered reader does not swallow
// what the person types for the command that comes after the question.
type onlyLines struct{ r io.Reader }

func (o onlyLines) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return o.r.Read(p[:1])
}
