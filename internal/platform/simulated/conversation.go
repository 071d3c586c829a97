package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
)

// converse is the shell on a terminal: it prints a prompt, reads a line and runs it, until the
// command exit. Ctrl-C ends the running command, or drops the line, and never the shell.
func (s *cmdShell) converse(ctx context.Context, banner string, prompt func() string,
	run func(line string) int) int {
	s.p.Terminal.HandleInterrupts(s.p)
	fmt.Fprint(s.p.Stdout, banner)
	code := 0
	for {
		fmt.Fprint(s.p.Stdout, prompt())
		line, err := readLine(s.p.Stdin)
		line = strings.TrimSpace(line)
		switch {
		case errors.Is(err, ErrInterrupted), err == nil && line == "":
			continue
		case err != nil:
			return exitKilled
		}
		if word, rest, _ := strings.Cut(line, " "); strings.EqualFold(word, "exit") {
			if n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), "/b "))); err == nil {
				code = n
			}
			return code
		}
		if code = run(line); ctx.Err() != nil {
			return exitKilled
		}
	}
}

// readLine reads one line from a terminal, which returns at most one line at a time.
func readLine(terminal io.Reader) (string, error) {
	var line strings.Builder
	buffer := make([]byte, longestLine)
	for !strings.HasSuffix(line.String(), "\n") {
		n, err := terminal.Read(buffer)
		line.Write(buffer[:n])
		if err != nil {
			return "", err
		}
	}
	return line.String(), nil
}

func (s *cmdShell) cmdOnTerminal(ctx context.Context) int {
	return s.converse(ctx, "Microsoft Windows [Version 10.0.20348.2849]\r\n"+
		"(c) Microsoft Corporation. All rights reserved. This is a simulated Windows; exit leaves.\r\n",
		func() string { return "\r\n" + s.folder + ">" },
		func(line string) int { return s.runAll(ctx, line) })
}

func powershellOnTerminal(ctx context.Context, p *Process) int {
	s := &cmdShell{p: p, folder: p.Folder}
	return s.converse(ctx, "Windows PowerShell\r\nThis is a simulated Windows; exit leaves.\r\n\r\n",
		func() string { return "PS " + s.folder + "> " },
		func(line string) int { return runStatements(ctx, p, line) })
}

// copyConsole imitates "copy con PATH": it writes lines of the terminal into a file, until a line has
// Ctrl-Z.
func (s *cmdShell) copyConsole(path string) int {
	to, err := s.p.Platform.Files.Create(s.absolute(path), platform.CreateTruncate)
	if err != nil {
		fmt.Fprintf(s.p.Stderr, "%v\r\n", err)
		return 1
	}
	defer to.Close()
	const ctrlZ = "\x1a"
	for {
		line, err := readLine(s.p.Stdin)
		if err != nil {
			return 1
		}
		text, _, last := strings.Cut(line, ctrlZ)
		if _, err := io.WriteString(to, text); err != nil {
			return 1
		}
		if last {
			fmt.Fprint(s.p.Stdout, "        1 file(s) copied.\r\n")
			return 0
		}
	}
}

// modeMain imitates "mode con".
func modeMain(_ context.Context, p *Process) int {
	if p.Terminal == nil {
		fmt.Fprint(p.Stdout, "The device CON is not currently available.\r\n")
		return 1
	}
	size := p.Terminal.Size()
	fmt.Fprintf(p.Stdout, "\r\nStatus for device CON:\r\n----------------------\r\n    Lines:          %d\r\n"+
		"    Columns:        %d\r\n", size.Rows, size.Columns)
	return 0
}

// pingMain imitates "ping -t HOST", which goes on until Ctrl-C.
func pingMain(ctx context.Context, p *Process) int {
	if len(p.Args) != 2 || p.Args[0] != "-t" {
		fmt.Fprint(p.Stdout, "The simulated ping knows ping -t HOST only.\r\n")
		return 1
	}
	fmt.Fprintf(p.Stdout, "\r\nPinging %s with 32 bytes of data:\r\n", p.Args[1])
	<-ctx.Done()
	return exitKilled
}
