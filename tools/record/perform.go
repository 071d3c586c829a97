package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/creack/pty"
)

// The size of the terminal.
const (
	columns = 110
	rows    = 30
)

// chunk is a part of a command's output.
type chunk struct {
	after time.Duration // since the part before, or the start of the command
	data  []byte
}

// loop lets bash run the commands of file descriptor 3, each until a null byte, and print after each
// a sequence that terminals ignore, with the exit code.
const loop = `while IFS= read -r -d "" line <&3; do eval "$line"; printf '\033]record;%d\a' $?; done`

var (
	doneStart = []byte("\x1b]record;")
	doneEnd   = []byte("\a")
)

// commandLimit bounds each command.
const commandLimit = 2 * time.Minute

// perform runs the commands of a session in one shell on a terminal, and returns the outputs of each.
func perform(ctx context.Context, session []command, home string) (outputs [][]chunk, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(len(session))*commandLimit)
	defer cancel()
	lines, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer feed.Close()
	shell := exec.CommandContext(ctx, "bash", "--norc", "--noprofile", "-c", loop)
	shell.ExtraFiles = []*os.File{lines}
	shell.Dir = home
	shell.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8"}
	screen, err := pty.StartWithSize(shell, &pty.Winsize{Rows: rows, Cols: columns})
	lines.Close()
	if err != nil {
		return nil, err
	}
	defer func() {
		feed.Close() // ends the loop
		err = errors.Join(err, shell.Wait(), screen.Close())
	}()
	for _, command := range session {
		if _, err := io.WriteString(feed, command.text+"\x00"); err != nil {
			return nil, err
		}
		output, code, err := collect(screen)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", command.text, err)
		}
		if code != command.exit {
			return nil, fmt.Errorf("%s: exit code %d, want %d:\n%s", command.text, code, command.exit, joined(output))
		}
		outputs = append(outputs, output)
	}
	return outputs, nil
}

// collect reads what a command prints until it has ended, and returns it with the exit code.
func collect(screen io.Reader) (output []chunk, code int, err error) {
	last := time.Now()
	var held []byte // may be the beginning of the sequence that ends the command
	buffer := make([]byte, 32<<10)
	for {
		n, err := screen.Read(buffer)
		if err != nil {
			return nil, 0, err
		}
		now := time.Now()
		data := append(held, buffer[:n]...)
		held = nil
		shown, rest, found := bytes.Cut(data, doneStart)
		if found {
			number, _, whole := bytes.Cut(rest, doneEnd)
			if len(shown) > 0 {
				output = append(output, chunk{now.Sub(last), bytes.Clone(shown)})
				last = now
			}
			if whole {
				code, err := strconv.Atoi(string(number))
				return output, code, err
			}
			held = bytes.Clone(data[len(shown):])
			continue
		}
		keep := partialSuffix(data, doneStart)
		held = bytes.Clone(data[len(data)-keep:])
		if data = data[:len(data)-keep]; len(data) > 0 {
			output = append(output, chunk{now.Sub(last), bytes.Clone(data)})
			last = now
		}
	}
}

// partialSuffix returns how many of the last bytes of data may be the beginning of sequence.
func partialSuffix(data, sequence []byte) int {
	for n := min(len(data), len(sequence)-1); n > 0; n-- {
		if bytes.HasSuffix(data, sequence[:n]) {
			return n
		}
	}
	return 0
}

func joined(output []chunk) []byte {
	var all []byte
	for _, c := range output {
		all = append(all, c.data...)
	}
	return all
}
