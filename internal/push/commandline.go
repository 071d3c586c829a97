package push

import (
	"fmt"
	"path"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/commandline"
)

// withArgs replaces the arguments that a service passes to the binary at destination. It
// keeps the rest of the command line letter for letter, such as the quotes around the path.
// If a program such as kube-log-runner.exe wraps the binary, withArgs keeps that program and
// its arguments.
func withArgs(commandLine, destination string, args []string) (string, error) {
	end := endOfProgram(commandLine, destination)
	if end < 0 {
		return "", fmt.Errorf("set the arguments of %s: the service runs %q, which does not contain that path; "+
			"remove args from the node file, or register the service again", destination, commandLine)
	}
	out := commandLine[:end]
	for _, arg := range args {
		out += " " + commandline.Quote(arg)
	}
	if strings.TrimRight(commandLine, " ") == out {
		return commandLine, nil
	}
	return out, nil
}

// endOfProgram returns the offset at which the program's path ends, including its
// closing quote; -1 if the path is not found.
func endOfProgram(commandLine, destination string) int {
	for from := 0; from < len(commandLine); {
		start, end, next := token(commandLine, from)
		if samePath(strings.Trim(commandLine[start:end], `"`), destination) {
			return end
		}
		from = next
	}
	// Windows also accepts an unquoted path with spaces, but only at the very
	// beginning, and only if nothing else matches.
	if len(commandLine) >= len(destination) && samePath(commandLine[:len(destination)], destination) {
		if rest := commandLine[len(destination):]; rest == "" || rest[0] == ' ' {
			return len(destination)
		}
	}
	return -1
}

// token finds the first argument at or after the offset from. It returns the argument's bounds and
// the offset at which to continue.
func token(line string, from int) (start, end, next int) {
	for from < len(line) && (line[from] == ' ' || line[from] == '\t') {
		from++
	}
	quoted := false
	for i := from; i < len(line); i++ {
		switch {
		case line[i] == '"' && (i == 0 || line[i-1] != '\\'):
			quoted = !quoted
		case (line[i] == ' ' || line[i] == '\t') && !quoted:
			return from, i, i + 1
		}
	}
	return from, len(line), len(line)
}

func samePath(a, b string) bool {
	clean := func(p string) string { return path.Clean(strings.ReplaceAll(strings.TrimSpace(p), `\`, "/")) }
	return strings.EqualFold(clean(a), clean(b))
}
