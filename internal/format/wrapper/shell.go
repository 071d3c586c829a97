package wrapper

import (
	"fmt"
	"strings"
)

// shell returns the one command that cmd.exe runs, without its redirections.
// https://learn.microsoft.com/windows-server/administration/windows-commands/cmd
func (l *looking) shell(rest string) (string, error) {
	command, keepQuotes, ok := shellCommand(rest)
	if !ok {
		return "", fmt.Errorf("its arguments lack /c, which the command follows")
	}
	if !keepQuotes {
		command = withoutOuterQuotes(command)
	}
	line, err := oneCommand(command)
	if err != nil {
		return "", err
	}
	return line, nil
}

// shellCommand returns the text after /c, /k or /r, and reports whether its outer quotes belong to it.
func shellCommand(rest string) (command string, keepQuotes, ok bool) {
	always := false // /s: the outer quotes always go
	for {
		rest = strings.TrimLeft(rest, " \t")
		if len(rest) < 2 || rest[0] != '/' {
			return "", false, false
		}
		switch rest[1] {
		case 'c', 'C', 'k', 'K', 'r', 'R':
			command = strings.Trim(rest[2:], " \t")
			return command, !always && isOneProgram(command), true
		case 's', 'S':
			always = true
		}
		if rest = rest[2:]; strings.HasPrefix(rest, ":") { // /e:on
			rest = rest[min(len(rest), strings.IndexAny(rest+" ", " \t")):]
		}
	}
}

// isOneProgram reports whether the quotes at the beginning of a command are those of a program's path:
// then there are two quotes, none of cmd's special characters between them, and nothing behind.
func isOneProgram(command string) bool {
	inner, ok := strings.CutPrefix(command, `"`)
	path, rest, closed := strings.Cut(inner, `"`)
	return !ok || closed && rest == "" && !strings.ContainsAny(path, "&<>()@^|") &&
		strings.HasSuffix(lower(path), ".exe") && strings.Count(lower(path), ".exe") == 1
}

// withoutOuterQuotes removes the first character, a quote, and the last quote.
func withoutOuterQuotes(command string) string {
	inner, ok := strings.CutPrefix(command, `"`)
	if !ok {
		return command
	}
	if last := strings.LastIndex(inner, `"`); last >= 0 {
		inner = inner[:last] + inner[last+1:]
	}
	return inner
}

// oneCommand returns the command without its redirections. Several commands are an error, since the
// program may be that of any of them.
func oneCommand(command string) (string, error) {
	command = strings.TrimLeft(strings.TrimSpace(command), "@")
	var out strings.Builder
	quoted := false
	for i := 0; i < len(command); i++ {
		switch c := command[i]; {
		case c == '"':
			quoted = !quoted
			out.WriteByte(c)
		case quoted:
			out.WriteByte(c)
		case c == '^' && i+1 < len(command):
			i++
			out.WriteByte(command[i])
		case c == '&' || c == '|' || c == '(':
			return "", fmt.Errorf("its command line has several commands")
		case c == '>' || c == '<':
			text := strings.TrimRight(out.String(), "12") // the number of the stream
			out.Reset()
			out.WriteString(text)
			i = afterTarget(command, i) - 1
		default:
			out.WriteByte(c)
		}
	}
	return strings.TrimSpace(out.String()), nil
}

// afterTarget returns the offset after the file of the redirection that begins at i, or after its &1.
func afterTarget(command string, i int) int {
	for i < len(command) && strings.IndexByte("><& \t", command[i]) >= 0 {
		i++
	}
	quoted := false
	for ; i < len(command); i++ {
		switch c := command[i]; {
		case c == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte(" \t><&|", c) >= 0:
			return i
		}
	}
	return i
}
