package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"
	"golang.org/x/text/encoding/unicode"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// shellKind is the kind of the SSH server's default shell, which runs every command line.
type shellKind string

const (
	shellCmd        shellKind = "cmd"
	shellPowerShell shellKind = "powershell"
	shellBash       shellKind = "bash" // Git's for Windows
)

// ShellNames are the default shells that a sandbox can have, the default first.
func ShellNames() []string {
	return []string{string(shellCmd), string(shellPowerShell), string(shellBash)}
}

// profileFolder is the administrator's profile.
const profileFolder = `C:\Users\` + Administrator

// defaultShell is the default shell of an SSH server.
type defaultShell struct {
	kind shellKind
	// profile has the lines that the shell runs at each start, before the command line: PowerShell's profile,
	// cmd's AutoRun or bash's BASH_ENV.
	profile string
	// noSFTPServer hides sftp-server.exe from the shell.
	noSFTPServer bool
	sftpFault    func(method, path string) error // see ServerOptions
}

func parseShell(name, profile string) (defaultShell, error) {
	if name == "" {
		name = string(shellCmd)
	}
	if !slices.Contains(ShellNames(), name) {
		return defaultShell{}, fmt.Errorf("shell %q: the sandbox has %s", name, strings.Join(ShellNames(), ", "))
	}
	return defaultShell{kind: shellKind(name), profile: profile}, nil
}

// shell imitates the default shell of a simulated machine. It supports the part of the shell's language that
// tools need when they log in (lists of commands, quotes, redirections to nowhere) and a few built-in commands.
// It runs all other commands as programs of the machine.
//
// Win32-OpenSSH runs every line of a client through this shell, and the SFTP server too
// (contrib/win32/win32compat/w32-doexec.c, do_exec_windows): `SHELL -c sftp-server.exe`, with cmd `/c`. So a shell
// that prints at its start prints before SFTP's first packet, and one that changes its folder moves SFTP's.
type shell struct {
	defaultShell
	disk disk
	// program runs a program of the machine to its end, as platform.Processes.Run does.
	program func(context.Context, platform.Command) (exitCode int, err error)
	// builtin runs a further built-in command of this machine's shell. ok reports whether the shell
	// has that command.
	builtin func(ctx context.Context, s *shell, words []string) (code int, ok bool)
	// about is the text that an interactive user gets at the start.
	about string
	// folder is the current folder. sshd starts the shell in the account's profile (do_exec_windows: chdir).
	folder string
	command
}

// run runs the command line, or the shell itself if the command line is empty.
func (s *shell) run(ctx context.Context) int {
	s.folder = profileFolder
	for line := range strings.Lines(s.profile) {
		if code, exited := s.runLine(ctx, strings.TrimSpace(line)); exited {
			return code
		}
	}
	if s.line == "" {
		return s.interact(ctx)
	}
	code, exited := s.runLine(ctx, s.line)
	if s.kind == shellPowerShell && !exited && code != 0 {
		return 1 // powershell -c returns 0 or 1, unless its script calls exit (PowerShell/PowerShell#13501)
	}
	return code
}

// interact reads lines until exit or the end of the input.
func (s *shell) interact(ctx context.Context) int {
	prompt := s.folder + ">"
	switch s.kind {
	case shellPowerShell:
		prompt = "PS " + s.folder + "> "
	case shellBash:
		prompt = "$ "
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
			code, _ := s.runLine(ctx, line)
			return code
		}
		sub := *s
		sub.stdin = strings.NewReader("")
		sub.runLine(ctx, line)
		s.folder = sub.folder
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

// runLine runs commands joined by &&, ||, & (cmd) or ; (PowerShell, bash). exited reports whether one of them ended
// the shell.
func (s *shell) runLine(ctx context.Context, line string) (code int, exited bool) {
	for _, part := range splitLine(s.kind, line) {
		if part.when == ifOK && code != 0 || part.when == ifFailed && code == 0 {
			continue
		}
		words := splitWords(s.kind, part.text)
		if len(words) == 0 {
			continue
		}
		if code, exited = s.runWords(ctx, words, part.text); exited {
			return code, true
		}
	}
	return code, false
}

// runWords runs one command; exit reports whether the command ends the shell.
func (s *shell) runWords(ctx context.Context, words []string, text string) (code int, exit bool) {
	sub, words := s.redirect(words)
	if s.kind == shellBash {
		words = convertPaths(words)
	}
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
		} else if s.kind == shellBash {
			fmt.Fprintf(sub.stdout, "%s\r\n", strings.Join(args, " "))
		} else {
			fmt.Fprintf(sub.stdout, "%s\r\n", strings.Join(args, "\r\n"))
		}
		return 0, false
	case "cd", "chdir", "set-location":
		return s.cd(args, sub.stderr), false
	case "rem", "@echo", "chcp":
		return 0, false
	case "read-host":
		fmt.Fprintf(sub.stdout, "%s: ", strings.Join(args, " "))
		_, _ = bufio.NewReader(sub.stdin).ReadString('\n') // the end of the input is an answer too
		return 0, false
	case "cmd":
		if code, ok := sub.cmd(args); ok {
			return code, false
		}
	case "sftp-server":
		if !s.noSFTPServer {
			return sub.serveSFTP(), false
		}
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

// cd changes the current folder, without an argument to the profile.
func (s *shell) cd(args []string, stderr io.Writer) int {
	folder := profileFolder
	for _, arg := range args {
		if !strings.HasPrefix(arg, "/") && !strings.HasPrefix(arg, "-") {
			folder = strings.ReplaceAll(arg, "/", `\`)
		}
	}
	if info, err := s.disk.Stat(folder); err != nil || !info.Folder {
		fmt.Fprint(stderr, "The system cannot find the path specified.\r\n")
		return 1
	}
	s.folder = folder
	return 0
}

// cmd carries out two forms of the program cmd itself: `cmd /c set NAME` for the variable of the account's profile
// (with /u, cmd's own commands print UTF-16), and a cmd without a switch, which reads its input to the end. ok reports
// whether the arguments have one of these forms.
func (s *shell) cmd(args []string) (code int, ok bool) {
	line := strings.ToLower(strings.Join(args, " "))
	command, wide := strings.CutPrefix(line, "/u ")
	switch {
	case command == "/c set userprofile":
		text := "USERPROFILE=" + profileFolder + "\r\n"
		if wide {
			text, _ = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String(text)
		}
		_, _ = io.WriteString(s.stdout, text) // the client may have gone
	case line != "" && !strings.HasPrefix(line, "/"):
		fmt.Fprintf(s.stdout, "Microsoft Windows [Version 10.0.20348.2849]\r\n\r\n%s>", s.folder)
		_, _ = io.Copy(io.Discard, s.stdin) // until the client closes it
	default:
		return 0, false
	}
	return 0, true
}

// serveSFTP is sftp-server.exe, whose relative paths begin in the shell's folder.
func (s *shell) serveSFTP() int {
	if err := serveSFTP(stdio{s.stdin, s.stdout}, s.disk, s.folder, s.sftpFault); err != nil {
		return 255
	}
	return 0 // without an exit code, scp fails
}

func (s *shell) runProgram(ctx context.Context, words []string) int {
	name, args := words[0], words[1:]
	if name == "&" && len(args) > 0 { // PowerShell's call operator
		name, args = args[0], args[1:]
	}
	if s.kind == shellCmd && strings.HasPrefix(name, "./") {
		return s.notFound(".") // for cmd, the slash ends the name and begins a switch
	}
	path := strings.ReplaceAll(name, "/", `\`)
	if rest, relative := strings.CutPrefix(path, `.\`); relative {
		path = s.folder + `\` + rest
	}
	code, err := s.program(ctx, platform.Command{
		Path: path, Args: args, Folder: s.folder, Stdin: s.stdin, Stdout: s.stdout, Stderr: s.stderr,
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
	if s.kind == shellBash {
		return bashNotFound(s.stderr, name)
	}
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
