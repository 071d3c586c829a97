// Package wrapper finds the program that a Windows service really runs. The Service Control Manager
// starts the program of the service's command line, which is often a wrapper: a program that starts
// another one, and keeps it running.
package wrapper

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/commandline"
)

// Machine answers the questions of wrappers about the machine on which they run.
type Machine interface {
	// Parameter returns a text of the key Services\SERVICE\Parameters in the registry.
	Parameter(service, name string) (value string, ok bool)
	// Texts returns the texts of a value of the type REG_MULTI_SZ of the key Services\SERVICE, or of its
	// subkey if the name is Parameters\NAME.
	Texts(service, name string) []string
	// Variable returns a variable of the machine's environment.
	Variable(name string) (value string, ok bool)
	// ReadFile returns the content of a file of at most some hundred kilobytes.
	ReadFile(path string) (content []byte, ok bool)
	// Exists reports whether there is a file.
	Exists(path string) bool
}

// Command is the program that a service runs, with its arguments.
type Command struct {
	// Line is the program's own command line, with the program's absolute path first; "": unknown.
	Line string
	// Wrappers are the file names of the programs that start it, the service's own program first.
	Wrappers []string
	// Unknown is the reason why Line is unknown.
	Unknown string
	// Script is the text of the script that starts the program; "": no script does, or it cannot be read.
	Script string
	// Logs are the paths of the files into which nssm and kube-log-runner write the program's output.
	Logs []string
}

// Program returns the absolute path of the program; "": unknown.
func (c Command) Program() string {
	if args := commandline.Split(c.Line); len(args) > 0 {
		return args[0]
	}
	return ""
}

// deepest is the number of wrappers that may start each other: the service's, a shell, a log runner.
const deepest = 4

// Look returns the program that a service with this command line runs.
func Look(service, commandLine string, m Machine) Command {
	l := looking{service: service, machine: m, own: map[string]string{}}
	c := l.look(commandLine)
	c.Logs = l.logs
	return c
}

func (l *looking) look(line string) Command {
	var c Command
	for range deepest {
		program, rest := split(l.expand(line))
		if strings.TrimSpace(program) == "" {
			return c.unknown("its command line is empty")
		}
		inner, isWrapper, err := l.unwrap(program, rest, len(c.Wrappers) == 0)
		switch {
		case err != nil:
			c.Wrappers, c.Script = append(c.Wrappers, fileName(program)), l.script
			return c.unknown(err.Error())
		case !isWrapper && strings.Contains(program, "%"):
			return c.unknown("the machine's environment lacks a variable of " + program)
		case !isWrapper && !isAbsolute(program):
			return c.unknown(program + " is not an absolute path")
		case !isWrapper:
			if !strings.Contains(fileName(program), ".") {
				program += ".exe" // as CreateProcess does
			}
			c.Line = strings.TrimRight(`"`+program+`"`+rest, " \t")
			return c
		}
		c.Wrappers = append(c.Wrappers, fileName(program))
		line = inner
	}
	return c.unknown("too many programs start each other")
}

func (c Command) unknown(reason string) Command {
	c.Unknown = reason
	return c
}

// looking is the search for the program of one service.
type looking struct {
	service string
	machine Machine
	script  string
	logs    []string
	own     map[string]string // the service's variables, by lower-case name
	alone   bool              // the program has these variables and none of the machine's
}

// unwrap returns the command line that a wrapper starts. first reports whether the Service Control
// Manager starts the program itself.
func (l *looking) unwrap(program, rest string, first bool) (inner string, isWrapper bool, err error) {
	if first {
		l.set(l.machine.Texts(l.service, "Environment"))
	}
	name := strings.TrimSuffix(lower(fileName(program)), ".exe")
	switch {
	case first && strings.HasPrefix(name, "nssm"):
		l.nssm()
		inner, err = l.parameters(program)
	case first && strings.HasPrefix(name, "srvany"):
		inner, err = l.parameters(program)
	case name == "kube-log-runner" || name == "log-runner":
		inner, err = l.logRunner(rest)
	case name == "cmd":
		inner, err = l.shell(rest)
	case name == "shawl":
		inner, err = afterDashes(rest)
	case first && strings.HasPrefix(name, "servy.service"):
		inner, err = servy(rest)
	case name == "powershell" || name == "pwsh":
		err = l.scripted(rest)
	case strings.HasSuffix(name, ".cmd") || strings.HasSuffix(name, ".bat"):
		err = l.scripted(commandline.Quote(program))
	case name == "svchost":
		err = fmt.Errorf("a library of svchost.exe is its program")
	default:
		if first {
			inner, isWrapper, err = l.winSW(program)
		}
		return inner, isWrapper, err
	}
	return inner, true, err
}

// logRunner returns what kube-log-runner starts: its arguments after its own flags.
// https://github.com/kubernetes/kubernetes/tree/master/staging/src/k8s.io/component-base/logs/kube-log-runner
func (l *looking) logRunner(rest string) (string, error) {
	for {
		arg, after := commandline.Next(rest)
		name, assigned := flag(arg)
		if name == "log-file" {
			_, file, _ := strings.Cut(arg, "=")
			if !assigned {
				file, _ = commandline.Next(after)
			}
			l.logs = append(l.logs, file)
		}
		switch {
		case arg == "--":
			return after, nil
		case name == "":
			return rest, nil
		case !assigned && name != "also-stdout" && name != "redirect-stderr":
			_, after = commandline.Next(after)
			rest = after
		default:
			rest = after
		}
	}
}

// flag returns the name of a flag; "" if the argument is none.
func flag(arg string) (name string, assigned bool) {
	if !strings.HasPrefix(arg, "-") {
		return "", false
	}
	name, _, assigned = strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return name, assigned
}

// afterDashes returns what shawl starts. https://github.com/mtkennerly/shawl
func afterDashes(rest string) (string, error) {
	for rest != "" {
		var arg string
		if arg, rest = commandline.Next(rest); arg == "--" {
			return rest, nil
		}
	}
	return "", fmt.Errorf("its arguments lack --, which the program follows")
}

// servy returns what servy starts. Its first versions have the program and its arguments as the first
// arguments of the service, its later versions have them in a database.
// https://github.com/aelassas/servy
func servy(rest string) (string, error) {
	args := commandline.Split("servy " + rest)
	if len(args) < 2 || !isAbsolute(args[1]) {
		return "", fmt.Errorf("servy keeps the program in its own database")
	}
	line := `"` + args[1] + `"`
	if len(args) > 2 {
		line += " " + args[2]
	}
	return line, nil
}

// scripted is the error of a script, whose text it keeps. rest are the arguments of the script's
// interpreter.
func (l *looking) scripted(rest string) error {
	for rest != "" {
		var arg string
		arg, rest = commandline.Next(rest)
		switch path := strings.Trim(arg, `'"`); lower(path[max(0, len(path)-4):]) {
		case ".ps1", ".cmd", ".bat":
			content, _ := l.machine.ReadFile(path)
			l.script = string(content)
			return fmt.Errorf("the script %s starts its program", path)
		}
	}
	return fmt.Errorf("a script in its command line starts its program")
}

func expand(text string, variable func(string) (string, bool)) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "%")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, rest, closed := strings.Cut(after, "%")
		value, ok := variable(name)
		if !closed || !ok {
			out.WriteString("%")
			text = after
			continue
		}
		out.WriteString(value)
		text = rest
	}
}

// split returns the program of a command line and its arguments, unchanged, with the blank before
// them. An unquoted path with spaces ends where its .exe ends, as the Service Control Manager finds
// it.
// https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-createprocessw
func split(line string) (program, rest string) {
	line = strings.TrimLeft(line, " \t")
	if quoted, ok := strings.CutPrefix(line, `"`); ok {
		program, rest, _ = strings.Cut(quoted, `"`)
		return program, rest
	}
	end := strings.IndexAny(line+" ", " \t")
	if isAbsolute(line) && !strings.Contains(fileName(line[:end]), ".") {
		lower := lower(line)
		for _, extension := range []string{".exe", ".cmd", ".bat"} {
			i := strings.Index(lower+" ", extension+" ")
			if i >= 0 && !strings.Contains(line[:i], `"`) {
				end = i + len(extension)
				break
			}
		}
	}
	return line[:end], line[end:]
}

func isAbsolute(path string) bool {
	return len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/') || strings.HasPrefix(path, `\\`)
}

// isRooted reports whether a path needs no folder before it.
func isRooted(path string) bool { return isAbsolute(path) || strings.HasPrefix(path, `\`) }

func fileName(path string) string { return path[strings.LastIndexAny(path, `\/`)+1:] }

// lower returns a text of the same length with lower-case ASCII letters.
func lower(text string) string {
	bytes := []byte(text)
	for i, c := range bytes {
		if 'A' <= c && c <= 'Z' {
			bytes[i] += 'a' - 'A'
		}
	}
	return string(bytes)
}
