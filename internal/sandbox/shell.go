package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// shellKind is the kind of the SSH server's default shell, which runs every command line.
type shellKind string

const (
	shellCmd        shellKind = "cmd"
	shellPowerShell shellKind = "powershell"
)

// profileFolder is the working directory of a new session.
const profileFolder = `C:\Users\` + Administrator

func parseShell(s string) (shellKind, error) {
	switch kind := shellKind(s); kind {
	case "":
		return shellCmd, nil
	case shellCmd, shellPowerShell:
		return kind, nil
	}
	return "", fmt.Errorf("shell %q: the sandbox has cmd and powershell", s)
}

// shell imitates the default shell of a simulated machine, which is cmd or PowerShell. It supports
// the part of the shell's language that tools need when they log in (lists of commands, quotes,
// redirections to nowhere) and a few built-in commands. It runs all other commands as programs of
// the machine.
type shell struct {
	kind shellKind
	disk disk
	// program runs a program of the machine to its end, as platform.Processes.Run does.
	program func(context.Context, platform.Command) (exitCode int, err error)
	// builtin runs a further built-in command of this machine's shell. ok reports whether the shell
	// has that command.
	builtin func(ctx context.Context, s *shell, words []string) (code int, ok bool)
	// about is the text that an interactive user gets at the start.
	about string
	command
}

// run runs the command line, or the shell itself if the command line is empty.
func (s *shell) run(ctx context.Context) int {
	if s.line != "" {
		return s.runLine(ctx, s.line)
	}
	return s.interact(ctx)
}

// interact reads lines until exit or the end of the input.
func (s *shell) interact(ctx context.Context) int {
	prompt := profileFolder + ">"
	if s.kind == shellPowerShell {
		prompt = "PS " + profileFolder + "> "
	}
	read := s.plainLines()
	if s.terminal {
		t := term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{s.stdin, s.stdout}, prompt)
		s.stdout, s.stderr, read = t, t, t.ReadLine
	}
	fmt.Fprintf(s.stdout, "This is a sandbox of swdt: %s; exit leaves.\r\n\r\n", s.about)
	for ctx.Err() == nil {
		line, err := read()
		if err != nil {
			return 0
		}
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.EqualFold(word, "exit") {
			return s.runLine(ctx, line)
		}
		sub := *s
		sub.stdin = strings.NewReader("")
		sub.runLine(ctx, line)
	}
	return 1
}

func (s *shell) plainLines() func() (string, error) {
	scanner := bufio.NewScanner(s.stdin)
	return func() (string, error) {
		if scanner.Scan() {
			return scanner.Text(), nil
		}
		return "", io.EOF
	}
}

// runLine runs commands joined by &&, ||, & (cmd) or ; (PowerShell).
func (s *shell) runLine(ctx context.Context, line string) int {
	code := 0
	for _, part := range splitLine(s.kind, line) {
		if part.when == ifOK && code != 0 || part.when == ifFailed && code == 0 {
			continue
		}
		words := splitWords(s.kind, part.text)
		if len(words) == 0 {
			continue
		}
		var exit bool
		if code, exit = s.runWords(ctx, words, part.text); exit {
			return code
		}
	}
	return code
}

// runWords runs one command; exit reports whether the command ends the shell.
func (s *shell) runWords(ctx context.Context, words []string, text string) (code int, exit bool) {
	sub, words := s.redirect(words)
	if len(words) == 0 {
		return 0, false
	}
	name, args := strings.TrimSuffix(strings.ToLower(words[0]), ".exe"), words[1:]
	switch name {
	case "exit":
		for _, arg := range args {
			if n, err := strconv.Atoi(arg); err == nil {
				code = n
			}
		}
		return code, true
	case "echo", "write-output":
		if s.kind == shellCmd { // cmd prints the text as typed, including the quotes
			fmt.Fprintf(sub.stdout, "%s\r\n", strings.TrimSpace(strings.TrimSpace(text)[len("echo"):]))
		} else {
			fmt.Fprintf(sub.stdout, "%s\r\n", strings.Join(args, "\r\n"))
		}
		return 0, false
	case "cd", "chdir", "rem", "@echo", "chcp":
		return 0, false
	case "mkdir", "md":
		return sub.makeFolders(args), false
	}
	if code, ok := s.builtin(ctx, sub, words); ok {
		return code, false
	}
	return sub.runProgram(ctx, words), false
}

// redirect removes redirections from the words, and returns a shell that applies them. It
// supports redirections to nowhere and from stderr to stdout.
func (s *shell) redirect(words []string) (*shell, []string) {
	sub := *s
	var rest []string
	for i := 0; i < len(words); i++ {
		switch strings.ToLower(words[i]) {
		case ">nul", "1>nul", ">$null", "1>$null":
			sub.stdout = io.Discard
		case "2>nul", "2>$null":
			sub.stderr = io.Discard
		case "2>&1":
			sub.stderr = sub.stdout
		case ">", "1>", "2>": // the next word is nul or $null
			if words[i] == "2>" {
				sub.stderr = io.Discard
			} else {
				sub.stdout = io.Discard
			}
			i++
		default:
			rest = append(rest, words[i])
		}
	}
	return &sub, rest
}

func (s *shell) makeFolders(paths []string) int {
	for _, p := range paths {
		if err := s.disk.MakeFolder(p); err != nil {
			fmt.Fprintf(s.stderr, "%v\r\n", err)
			return 1
		}
	}
	return 0
}

func (s *shell) runProgram(ctx context.Context, words []string) int {
	name, args := words[0], words[1:]
	if name == "&" && len(args) > 0 { // PowerShell's call operator
		name, args = args[0], args[1:]
	}
	// sshd starts the shell in the user's profile, so relative paths begin in the profile.
	if rest, relative := strings.CutPrefix(strings.ReplaceAll(name, "/", `\`), `.\`); relative {
		name = profileFolder + `\` + rest
	}
	code, err := s.program(ctx, platform.Command{
		Path: name, Args: args, Stdin: s.stdin, Stdout: s.stdout, Stderr: s.stderr,
	})
	switch {
	case errors.Is(err, fault.ErrNotExist):
		return s.notFound(name)
	case errors.Is(err, fault.ErrPermission):
		fmt.Fprint(s.stderr, "Access is denied.\r\n")
		return 1
	case err != nil:
		fmt.Fprintf(s.stderr, "%v\r\n", err)
		return 1
	}
	return code
}

// notFound prints the error message that Windows prints for a missing program, and returns the
// exit code that Windows' sshd then sends.
func (s *shell) notFound(name string) int {
	if s.kind == shellPowerShell {
		fmt.Fprintf(s.stderr, "%[1]s : The term '%[1]s' is not recognized as the name of a cmdlet, function, script "+
			"file, or operable \r\n"+
			"program. Check the spelling of the name, or if a path was included, verify that the path is correct and "+
			"try again.\r\n"+
			"At line:1 char:1\r\n+ %[1]s\r\n"+
			"    + CategoryInfo          : ObjectNotFound: (%[1]s:String) [], CommandNotFoundException\r\n"+
			"    + FullyQualifiedErrorId : CommandNotFoundException\r\n \r\n", name)
		return 1
	}
	if folder := strings.LastIndexAny(name, `\/`); folder > 2 {
		if _, err := s.disk.Stat(name[:folder]); err != nil {
			fmt.Fprint(s.stderr, "The system cannot find the path specified.\r\n")
			return 1
		}
	}
	fmt.Fprintf(s.stderr, "'%s' is not recognized as an internal or external command,\r\noperable program or batch "+
		"file.\r\n", name)
	return 1
}
