// Package commandline writes and reads command lines as Windows programs do,
// which get one string and not a list.
// https://learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments
package commandline

import "strings"

// Join is the command line that a Windows program reads as these arguments.
func Join(args ...string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = Quote(arg)
	}
	return strings.Join(quoted, " ")
}

// Quote writes an argument so that a Windows program reads it as it is:
// backslashes before a quote are doubled, the quote is escaped.
func Quote(arg string) string {
	if arg != "" && !strings.ContainsAny(arg, " \t\n\v\"") {
		return arg
	}
	var out strings.Builder
	out.WriteByte('"')
	backslashes := 0
	for i := 0; i < len(arg); i++ {
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
