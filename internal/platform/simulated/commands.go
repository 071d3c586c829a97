package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

type command func(ctx context.Context, p *Process) int

// builtinCommands returns Windows' own programs and Chocolatey, by the name in their executables' notes. The files of
// netsh, wevtutil, pktmon, vfpctrl, hcsdiag, sysprep and choco name their sources. swdt reads no text of the others: users
// of a sandbox see them, shortened.
func builtinCommands() map[string]command {
	return map[string]command{
		"cmd":        cmdMain,
		"hostname":   hostnameMain,
		"whoami":     whoamiMain,
		"ipconfig":   ipconfigMain,
		"netsh":      netshMain,
		"powershell": powershellMain,
		"pwsh":       powershellMain,
		"choco":      chocoMain,
		"chocolatey": chocoMain,
		"wevtutil":   wevtutilMain,
		"hcsdiag":    hcsdiagMain,
		"pktmon":     pktmonMain,
		"vfpctrl":    vfpctrlMain,
		"sc":         scMain,
		"sysprep":    sysprepMain,
		"mode":       modeMain,
		"ping":       pingMain,
		"defrag":     func(context.Context, *Process) int { return 0 }, // nothing to do: removed files have no content
		"svchost":    func(context.Context, *Process) int { return 0 },
		"dlv":        dlvMain,
	}
}

func hostnameMain(_ context.Context, p *Process) int {
	fmt.Fprintf(p.Stdout, "%s\r\n", p.p.m.options.Hostname)
	return 0
}

// scMain imitates sc.exe, with the commands start, stop and queryex. Like sc.exe, start and stop only send the
// request. queryex lists all services, whatever its options.
func scMain(ctx context.Context, p *Process) int {
	services := p.Platform.Services
	var err error
	switch {
	case len(p.Args) > 0 && strings.EqualFold(p.Args[0], "queryex"):
		err = listServices(ctx, p)
	case len(p.Args) == 2 && strings.EqualFold(p.Args[0], "start"):
		err = services.Start(ctx, p.Args[1])
	case len(p.Args) == 2 && strings.EqualFold(p.Args[0], "stop"):
		err = services.Stop(ctx, p.Args[1])
	default:
		fmt.Fprint(p.Stdout, "USAGE: sc start|stop|queryex [service name]\r\n")
		return 1
	}
	if err != nil {
		fmt.Fprintf(p.Stdout, "[SC] ControlService FAILED: %v\r\n", err)
		return 1
	}
	return 0
}

func listServices(ctx context.Context, p *Process) error {
	all, err := p.Platform.Services.List(ctx)
	for _, s := range all {
		fmt.Fprintf(p.Stdout, "\r\nSERVICE_NAME: %s\r\nDISPLAY_NAME: %s\r\n        STATE              : %s\r\n"+
			"        WIN32_EXIT_CODE    : %d\r\n        PID                : %d\r\n", s.Name, s.DisplayName,
			strings.ToUpper(string(s.State)), s.ExitCode, s.PID)
	}
	return err
}

func whoamiMain(_ context.Context, p *Process) int {
	fmt.Fprintf(p.Stdout, "%s\\administrator\r\n", strings.ToLower(p.p.m.options.Hostname))
	return 0
}

func ipconfigMain(_ context.Context, p *Process) int {
	fmt.Fprint(p.Stdout, p.p.m.ipconfig())
	return 0
}

// cmdMain imitates cmd.exe. It runs the TEXT of /c TEXT, in which & and && separate commands ("cmd" on learn.microsoft.com).
// It knows only the few commands that users and tests need.
func cmdMain(ctx context.Context, p *Process) int {
	text := ""
	for i, arg := range p.Args {
		if strings.EqualFold(arg, "/c") || strings.EqualFold(arg, "/k") {
			text = strings.Join(p.Args[i+1:], " ")
			break
		}
	}
	shell := &cmdShell{p: p, folder: p.Folder}
	switch {
	case text == "" && p.Terminal != nil:
		return shell.cmdOnTerminal(ctx)
	case text == "":
		return shell.interactive(ctx)
	}
	return shell.runAll(ctx, text)
}

// stderrMark replaces 1>&2 while the line is split at &.
const stderrMark = "\x01"

type cmdShell struct {
	p      *Process
	folder string
	exited bool
}

func (s *cmdShell) interactive(ctx context.Context) int {
	input, err := io.ReadAll(io.LimitReader(s.p.Stdin, 1<<20))
	if err != nil {
		return 1
	}
	code := 0
	for line := range strings.Lines(string(input)) {
		if line = strings.TrimSpace(line); line != "" && !s.exited {
			code = s.runAll(ctx, line)
		}
	}
	return code
}

func (s *cmdShell) runAll(ctx context.Context, text string) int {
	code := 0
	text = strings.NewReplacer("1>&2", stderrMark, ">&2", stderrMark, "&&", "\x00").Replace(text)
	for group := range strings.SplitSeq(text, "&") {
		for one := range strings.SplitSeq(group, "\x00") {
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			if code = s.run(ctx, one); code != 0 || s.exited {
				break
			}
		}
		if s.exited {
			break
		}
	}
	return code
}

func (s *cmdShell) run(ctx context.Context, line string) int {
	out, errOut := s.p.Stdout, s.p.Stderr
	if rest, ok := strings.CutSuffix(line, stderrMark); ok {
		line, out = strings.TrimSpace(rest), errOut
	}
	argv := commandline.Split(line)
	if len(argv) == 0 {
		return 0
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(line, argv[0]), " ")
	switch strings.ToLower(argv[0]) {
	case "echo":
		fmt.Fprintf(out, "%s\r\n", s.p.p.m.expandLocked(rest))
	case "exit":
		s.exited = true
		code, _ := strconv.Atoi(argv[len(argv)-1])
		return code
	case "ver":
		fmt.Fprint(out, "\r\nMicrosoft Windows [Version 10.0.20348.2849]\r\n")
	case "type":
		return s.typeFiles(argv[1:])
	case "dir":
		return s.dir(argv[1:])
	case "cd", "chdir":
		return s.cd(argv[1:])
	case "copy":
		if len(argv) != 3 || !strings.EqualFold(argv[1], "con") || s.p.Terminal == nil {
			fmt.Fprint(errOut, "The simulated cmd can copy the console only: copy con FILE\r\n")
			return 1
		}
		return s.copyConsole(argv[2])
	case "del", "erase":
		return s.del(argv[1:])
	case "rmdir", "rd":
		return s.rmdir(argv[1:])
	case "start":
		return s.external(ctx, withoutFlags(argv[1:]))
	case "mkdir", "md":
		for _, path := range argv[1:] {
			if err := s.p.Platform.Files.MakeFolder(s.absolute(path)); err != nil {
				fmt.Fprintf(errOut, "%v\r\n", err)
				return 1
			}
		}
	default:
		return s.external(ctx, argv)
	}
	return 0
}

// external runs a program.
func (s *cmdShell) external(ctx context.Context, argv []string) int {
	code, err := s.p.Platform.Processes.Run(ctx, platform.Command{
		Path: argv[0], Args: argv[1:], Folder: s.folder, Environment: s.p.Environment,
		Stdin: s.p.Stdin, Stdout: s.p.Stdout, Stderr: s.p.Stderr,
	})
	switch {
	case errors.Is(err, fault.ErrNotExist) && strings.ContainsAny(argv[0], `\/`):
		fmt.Fprint(s.p.Stderr, "The system cannot find the path specified.\r\n")
		return 1
	case errors.Is(err, fault.ErrNotExist):
		fmt.Fprintf(s.p.Stderr, "'%s' is not recognized as an internal or external command,\r\noperable program or "+
			"batch file.\r\n", argv[0])
		return 1
	case err != nil:
		fmt.Fprintf(s.p.Stderr, "%v\r\n", err)
		return 1
	}
	return code
}

func (s *cmdShell) absolute(path string) string {
	if _, _, err := splitPath(path); err == nil || errors.Is(err, fault.ErrNotExist) {
		return path
	}
	return s.folder + `\` + path
}

func (s *cmdShell) typeFiles(paths []string) int {
	for _, path := range paths {
		f, err := s.p.Platform.Files.Open(s.absolute(path))
		if err != nil {
			fmt.Fprint(s.p.Stderr, "The system cannot find the file specified.\r\n")
			return 1
		}
		_, err = io.Copy(s.p.Stdout, f)
		_ = f.Close()
		if err != nil {
			return 1
		}
	}
	return 0
}

func (s *cmdShell) dir(args []string) int {
	path := s.folder
	for _, arg := range args {
		if !strings.HasPrefix(arg, "/") {
			path = s.absolute(arg)
		}
	}
	list, err := s.p.Platform.Files.List(path)
	if err != nil {
		fmt.Fprint(s.p.Stderr, "File Not Found\r\n")
		return 1
	}
	fmt.Fprintf(s.p.Stdout, " Directory of %s\r\n\r\n", path)
	for _, f := range list {
		kind := fmt.Sprintf("%17d", f.Size)
		if f.Folder {
			kind = "   <DIR>         "
		}
		fmt.Fprintf(s.p.Stdout, "%s %s %s\r\n", f.Modified.Format("01/02/2006  03:04 PM"), kind, baseName(f.Path))
	}
	return 0
}

// del deletes files; the last name of a path may be *, or * and an extension.
func (s *cmdShell) del(args []string) int {
	for _, arg := range args {
		if strings.HasPrefix(arg, "/") {
			continue
		}
		name := baseName(arg)
		folder := s.absolute(strings.TrimSuffix(strings.TrimSuffix(arg, name), `\`))
		ending, several := strings.CutPrefix(name, "*")
		files, err := s.p.Platform.Files.List(folder)
		if err != nil {
			fmt.Fprint(s.p.Stderr, "The system cannot find the path specified.\r\n")
			return 1
		}
		for _, f := range files {
			named := strings.EqualFold(baseName(f.Path), name) || several &&
				strings.HasSuffix(fold(f.Path), fold(ending))
			if !named || f.Folder {
				continue
			}
			if err := s.p.Platform.Files.Remove(f.Path); err != nil {
				fmt.Fprintf(s.p.Stderr, "%s\r\nAccess is denied.\r\n", f.Path)
				return 1
			}
		}
	}
	return 0
}

// rmdir removes folders with everything in them. rmdir goes on after a file that it cannot remove, and its exit code is 0
// even then: swdt does not read that code, and looks whether the folder is gone.
func (s *cmdShell) rmdir(args []string) int {
	for _, path := range withoutFlags(args) {
		s.removeTree(s.absolute(path))
	}
	return 0
}

func (s *cmdShell) removeTree(path string) {
	if list, err := s.p.Platform.Files.List(path); err == nil {
		for _, f := range list {
			s.removeTree(f.Path)
		}
	}
	if err := s.p.Platform.Files.Remove(path); err != nil {
		fmt.Fprintf(s.p.Stderr, "%s\r\nAccess is denied.\r\n", path)
	}
}

// withoutFlags returns args without the arguments at their beginning that start with a slash.
func withoutFlags(args []string) []string {
	for len(args) > 0 && strings.HasPrefix(args[0], "/") {
		args = args[1:]
	}
	return args
}

func (s *cmdShell) cd(args []string) int {
	if len(args) > 0 && strings.EqualFold(args[0], "/d") {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintf(s.p.Stdout, "%s\r\n", s.folder)
		return 0
	}
	path := s.absolute(args[0])
	if info, err := s.p.Platform.Files.Stat(path); err != nil || !info.Folder {
		fmt.Fprint(s.p.Stderr, "The system cannot find the path specified.\r\n")
		return 1
	}
	s.folder = path
	return 0
}

func (m *Machine) expandLocked(text string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.expand(strings.ReplaceAll(text, "%USERPROFILE%", profileFolder))
}
