// Package hostprocess decides what a Windows node starts for a HostProcess container, as the published runtime does.
// Tests hold the pods that swdt makes against it: no program runs.
//
// The rules are those of github.com/microsoft/hcsshim v0.11.4, internal/jobcontainers: jobcontainer.go
// (CreateProcess), mounts.go and path.go. Later versions were read too and are the same in them. The rules of cmd.exe
// are those that `cmd /?` prints.
package hostprocess

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// MaxCommandLine is the length of the longest command line of cmd.exe, in characters.
// https://learn.microsoft.com/troubleshoot/windows-client/shell-experience/command-line-string-limitation
const MaxCommandLine = 8191

// Windows is a node's Windows with its runtime.
type Windows struct {
	// Binds reports whether Windows has the bind filter (bindfltapi.dll, since Server 2022) and the runtime uses it
	// (containerd 1.7 and later). The container's root is then C:\hpc, volumes are at their paths, and cmd.exe starts
	// each command. Otherwise the root is a folder of its own for each container, and volumes are only below it.
	Binds bool
	// Files has the files of the node that a container may start, besides those of Windows.
	Files []string
}

// All returns the forms of Windows: with the bind filter, and without.
func All() map[string]Windows {
	return map[string]Windows{"Server 2022": {Binds: true}, "Server 2019": {}}
}

// Image is the part of an image that decides what starts.
type Image struct {
	Entrypoint, Command []string
	WorkingDir          string
	Files               []string // paths from the root of the image, such as kube-proxy/kube-proxy.exe
}

// Process is what the node starts.
type Process struct {
	Program   string // its file
	Arguments []string
	Dir       string // the working folder
	Root      string // the root of the container, with a backslash at its end
}

// NotStartedError reports that a command starts no program.
type NotStartedError struct{ Command, Why string }

func (e *NotStartedError) Error() string { return fmt.Sprintf("start %q: %s", e.Command, e.Why) }

const mountPoint = "CONTAINER_SANDBOX_MOUNT_POINT"

// Start returns the process that a container starts with, or a *NotStartedError. volumes has the files of each volume
// that the container mounts, by the volume's name.
func (w Windows) Start(image Image, c corev1.Container, volumes map[string][]string) (Process, error) {
	entrypoint, arguments := image.Entrypoint, image.Command
	if len(c.Command) > 0 {
		entrypoint, arguments = c.Command, nil
	}
	if len(c.Args) > 0 {
		arguments = c.Args
	}
	dir := c.WorkingDir
	if dir == "" {
		dir = image.WorkingDir
	}
	return w.run(image, c, volumes, slices.Concat(entrypoint, arguments), dir)
}

// Exec returns the process of a command that is started in a running container.
func (w Windows) Exec(image Image, c corev1.Container, volumes map[string][]string, command ...string) (Process, error) {
	return w.run(image, c, volumes, command, c.WorkingDir)
}

func (w Windows) run(image Image, c corev1.Container, volumes map[string][]string, command []string, dir string) (
	Process, error) {
	p := Process{Root: w.root()}
	p.Dir = p.Root
	if dir != "" {
		changed := replaced(dir, p.Root)
		if changed == dir && !w.Binds {
			changed = join(p.Root, withoutDrive(dir))
		}
		p.Dir = changed
	}
	words := []string{}
	for _, word := range command {
		words = append(words, escaped(word))
	}
	line := replaced(strings.Join(words, " "), p.Root)
	files := w.files(image, c, volumes)
	if !w.Binds {
		return p, p.fill(line, files, false)
	}
	if shell := "cmd /c " + line; len([]rune(shell)) > MaxCommandLine {
		return p, &NotStartedError{line[:40] + "…", "cmd.exe: The command line is too long."}
	}
	return p, p.fill(asShellReads(line), files, true)
}

// root returns the root of a container.
func (w Windows) root() string {
	if w.Binds {
		return `C:\hpc\`
	}
	return `C:\hpc\0f3a\`
}

// replaced returns a text in which the variable with the root is replaced, in the two forms that the runtime knows.
func replaced(text, root string) string {
	root = strings.TrimSuffix(root, `\`)
	return strings.NewReplacer("%"+mountPoint+"%", root, "$env:"+mountPoint, root).Replace(text)
}

// files returns all files that exist for the container, in lower case.
func (w Windows) files(image Image, c corev1.Container, volumes map[string][]string) map[string]bool {
	all := map[string]bool{}
	add := func(name string) { all[strings.ToLower(strings.ReplaceAll(name, "/", `\`))] = true }
	for _, program := range []string{`cmd.exe`, `ping.exe`, `curl.exe`, `tar.exe`, `WindowsPowerShell\v1.0\powershell.exe`} {
		add(`C:\Windows\System32\` + program)
	}
	for _, name := range w.Files {
		add(name)
	}
	for _, name := range image.Files {
		add(join(w.root(), name))
	}
	for _, m := range c.VolumeMounts {
		for _, name := range volumes[m.Name] {
			inside := path.Join(withoutDrive(strings.ReplaceAll(m.MountPath, `\`, "/")), name)
			add(join(w.root(), inside))
			if w.Binds {
				add(`C:\` + strings.TrimLeft(inside, "/"))
			}
		}
	}
	return all
}

// fill sets the program and its arguments, or returns a *NotStartedError.
func (p *Process) fill(line string, files map[string]bool, shell bool) error {
	all := split(line)
	if len(all) == 0 {
		return &NotStartedError{line, "there is no command"}
	}
	name := all[0]
	// cmd.exe takes a slash for the beginning of an option, unless the name is quoted.
	if shell && !strings.HasPrefix(line, `"`) && strings.Contains(name, "/") {
		return &NotStartedError{name, "cmd.exe: it is not recognized as an internal or external command, operable program or batch file."}
	}
	program, ok := p.find(name, files, shell)
	if !ok {
		why := "the system cannot find the file specified."
		if shell {
			why = "cmd.exe: it is not recognized as an internal or external command, operable program or batch file."
		}
		return &NotStartedError{name, why}
	}
	p.Program, p.Arguments = program, all[1:]
	return p.checkPowerShell(files)
}

// find returns the file of a program. cmd.exe runs only files with an extension of PATHEXT; the runtime itself takes a
// file without extension too.
func (p *Process) find(name string, files map[string]bool, shell bool) (string, bool) {
	name = strings.ReplaceAll(name, "/", `\`)
	folders := []string{""}
	switch {
	case strings.HasPrefix(name, `\`):
		name = "C:" + name
	case len(name) > 1 && name[1] == ':':
	default:
		folders = []string{p.Dir, `C:\Windows\System32`, `C:\Windows\System32\WindowsPowerShell\v1.0`, p.Root}
	}
	for _, folder := range folders {
		at := name
		if folder != "" {
			at = join(folder, name)
		}
		for _, extension := range []string{"", ".com", ".exe", ".bat", ".cmd"} {
			file := strings.ToLower(at + extension)
			if shell && !slices.Contains([]string{".com", ".exe", ".bat", ".cmd"}, path.Ext(file)) {
				continue
			}
			if files[file] {
				return at + extension, true
			}
		}
	}
	return "", false
}

// checkPowerShell returns a *NotStartedError if PowerShell ends at once: without arguments it reads its input, which is
// empty in a container, and with a script that does not exist it prints an error.
func (p *Process) checkPowerShell(files map[string]bool) error {
	if !strings.EqualFold(path.Base(strings.ReplaceAll(p.Program, `\`, "/")), "powershell.exe") {
		return nil
	}
	if len(p.Arguments) == 0 {
		return &NotStartedError{p.Program, "PowerShell reads an empty input, and ends with exit code 0"}
	}
	for i, a := range p.Arguments {
		if strings.EqualFold(a, "-File") && i+1 < len(p.Arguments) {
			script := strings.ToLower(strings.ReplaceAll(p.Arguments[i+1], "/", `\`))
			if !files[script] {
				return &NotStartedError{p.Arguments[i+1], "the argument to the -File parameter does not exist"}
			}
		}
	}
	return nil
}

// asShellReads returns what `cmd /c` runs of a line: if the line begins with a quote, and has more than two quotes,
// cmd.exe removes the first and the last one.
func asShellReads(line string) string {
	if !strings.HasPrefix(line, `"`) || strings.Count(line, `"`) <= 2 {
		return line
	}
	last := strings.LastIndex(line, `"`)
	return line[1:last] + line[last+1:]
}

// escaped returns an argument as the runtime quotes it in a command line.
func escaped(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\"") {
		return word
	}
	return `"` + strings.ReplaceAll(word, `"`, `\"`) + `"`
}

// split returns the words of a command line.
func split(line string) (words []string) {
	var word strings.Builder
	quoted, begun := false, false
	for i, r := range line {
		switch {
		case r == '"' && (i == 0 || line[i-1] != '\\'):
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

func withoutDrive(name string) string {
	if len(name) > 1 && name[1] == ':' {
		return name[2:]
	}
	return name
}

func join(folder, name string) string {
	name = strings.ReplaceAll(name, "/", `\`)
	return strings.TrimRight(folder, `\`) + `\` + strings.TrimLeft(name, `\`)
}
