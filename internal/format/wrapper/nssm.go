package wrapper

import (
	"fmt"
	"path"
	"strings"
)

// nssm reads the environment that nssm gives its program, and the files of the program's output.
// https://nssm.cc/usage
func (l *looking) nssm() {
	if all := l.machine.Texts(l.service, `Parameters\AppEnvironment`); len(all) > 0 {
		l.own, l.alone = map[string]string{}, true
		l.set(all)
	}
	l.set(l.machine.Texts(l.service, `Parameters\AppEnvironmentExtra`))
	for _, name := range []string{"AppStdout", "AppStderr"} {
		file := strings.ReplaceAll(l.parameter(name), "/", `\`)
		if file != "" && !isRooted(file) { // nssm opens it in its own folder, not in AppDirectory
			file = l.root() + `\System32\` + file
		}
		if file != "" && !strings.Contains(file, "%") {
			l.logs = append(l.logs, file)
		}
	}
}

// parameters returns what nssm and Microsoft's srvany start; wrapper is the path of theirs.
// https://learn.microsoft.com/troubleshoot/windows-client/setup-upgrade-and-drivers/create-user-defined-service
func (l *looking) parameters(wrapper string) (string, error) {
	program := l.parameter("Application")
	switch {
	case program == "":
		return "", fmt.Errorf("the registry lacks the value Application in the service's key Parameters")
	case !isAbsolute(program):
		program = l.find(program, wrapper)
	}
	args, _ := l.machine.Parameter(l.service, "AppParameters")
	return strings.TrimSpace(`"` + program + `" ` + args), nil
}

// find returns the file that CreateProcess starts for a name without a drive, or the name if there is no such
// file. CreateProcess does not look into the folder in which the program is to run, nssm's AppDirectory. A
// service itself runs in System32.
// https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-createprocessw
func (l *looking) find(program, wrapper string) string {
	if !strings.Contains(fileName(program), ".") {
		program += ".exe"
	}
	folders := []string{l.root() + `\System32`}
	if !strings.HasPrefix(program, ".") {
		search, _ := l.variable("Path")
		folders = append(folders, l.root())
		folders = append(folders, strings.Split(l.expand(search), ";")...)
		if isAbsolute(wrapper) {
			folders = append([]string{strings.TrimSuffix(wrapper, fileName(wrapper))}, folders...)
		}
	}
	for _, folder := range folders {
		file := strings.ReplaceAll(strings.Trim(folder, `" `)+`\`+program, `\`, "/")
		if file = strings.ReplaceAll(path.Clean(file), "/", `\`); isAbsolute(file) && l.machine.Exists(file) {
			return file
		}
	}
	return program
}

// root returns the folder of Windows.
func (l *looking) root() string {
	if root, ok := l.machine.Variable("SystemRoot"); ok {
		return root
	}
	return `C:\Windows`
}

// parameter returns a text of the service's key Parameters, with the variables replaced and without the
// quotes around it; "": there is none.
func (l *looking) parameter(name string) string {
	value, _ := l.machine.Parameter(l.service, name)
	return strings.Trim(l.expand(value), `" `)
}

// set adds variables, each NAME=value, to the service's. A value may contain earlier variables.
func (l *looking) set(lines []string) {
	for _, line := range lines {
		if name, value, ok := strings.Cut(line, "="); ok {
			l.own[lower(name)] = l.expand(value)
		}
	}
}

func (l *looking) variable(name string) (string, bool) {
	if value, ok := l.own[lower(name)]; ok || l.alone {
		return value, ok
	}
	return l.machine.Variable(name)
}

// expand replaces %NAME% by the variables of the service. Unknown names stay.
func (l *looking) expand(text string) string {
	return expand(text, l.variable)
}
