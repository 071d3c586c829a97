// Package commandline writes and parses command lines as Windows programs do. Such a program
// receives its command line as one string, not as a list of arguments.
// https://learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments
package commandline

import "strings"

// Join returns the command line that a Windows program parses into these
// arguments.
func Join(args ...string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = Quote(arg)
	}
	return strings.Join(quoted, " ")
}

// Quote quotes an argument so that a Windows program receives it unchanged:
// backslashes before a quote are doubled, the quote is escaped.
func Quote(arg string) string {
	if arg != "" && !strings.ContainsAny(arg, " \t\n\v\"") {
		return arg
	}
	var out strings.Builder
	out.WriteByte('"')
	backslashes := 0
	for i := range len(arg) {
		switch arg[i] {
		case '\\':
			backslashes++
			continue
		case '"':
			out.WriteString(strings.Repeat(`\`, 2*backslashes+1))
		default:
			out.WriteString(strings.Repeat(`\`, backslashes))
		}
		backslashes = 0
		out.WriteByte(arg[i])
	}
	out.WriteString(strings.Repeat(`\`, 2*backslashes))
	out.WriteByte('"')
	return out.String()
}

// Split returns the arguments that a Windows program receives for this command line, the
// program's own name first. It follows the rules of CommandLineToArgvW.
func Split(line string) []string {
	var args []string
	for line = strings.TrimLeft(line, " \t"); line != ""; line = strings.TrimLeft(line, " \t") {
		var arg string
		arg, line = nextArgument(line, len(args) == 0)
		args = append(args, arg)
	}
	return args
}

// Next returns the first argument of a part of a command line that follows the program's name, and
// the rest of the line, unchanged.
func Next(line string) (arg, rest string) {
	return nextArgument(strings.TrimLeft(line, " \t"), false)
}

func nextArgument(line string, program bool) (arg, rest string) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(line); {
		slashes := 0
		for !program && i < len(line) && line[i] == '\\' {
			slashes++
			i++
		}
		if i < len(line) && line[i] == '"' {
			b.WriteString(strings.Repeat(`\`, slashes/2))
			switch {
			case slashes%2 == 1:
				b.WriteByte('"')
			case quoted && !program && i+1 < len(line) && line[i+1] == '"':
				b.WriteByte('"')
				i++
			default:
				quoted = !quoted
			}
			i++
			continue
		}
		b.WriteString(strings.Repeat(`\`, slashes))
		if i == len(line) {
			break
		}
		if !quoted && (line[i] == ' ' || line[i] == '\t') {
			return b.String(), line[i:]
		}
		b.WriteByte(line[i])
		i++
	}
	return b.String(), ""
}
