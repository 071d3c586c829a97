// Package remedy writes command lines of swdt that a person may paste.
//
// A text that proposes a command has it in backquotes: "see why: `swdt logs
// kubelet`". Inside them the command is quoted as a POSIX shell reads it, and it
// names no node and no node file, since the packages that write such texts know
// neither. The command line (internal/cli) finds these commands with Rewrite, adds
// the flags of the invocation, and quotes the result for the user's shell.
package remedy

import (
	"regexp"
	"strings"
)

// program is the first word of every command that Rewrite finds.
const program = "swdt"

// Command returns a command of swdt in backquotes, for a text that proposes it.
// Arguments may hold anything, such as names that a node reported.
func Command(args ...string) string {
	return "`" + POSIX.Join(append([]string{program}, args...)) + "`"
}

// Rewrite returns text with each command in it replaced by what line makes of its
// arguments, the first of which is "swdt". What follows the command in the same
// backquotes, such as a redirection, stays.
func Rewrite(text string, line func(args []string) string) string {
	return quoted().ReplaceAllStringFunc(text, func(whole string) string {
		args, rest, ok := split(whole[1 : len(whole)-1])
		if !ok {
			return whole
		}
		return "`" + line(args) + rest + "`"
	})
}

// Commands returns the arguments of each command in text, the first of which is
// "swdt".
func Commands(text string) (all [][]string) {
	Rewrite(text, func(args []string) string {
		all = append(all, args)
		return ""
	})
	return all
}

func quoted() *regexp.Regexp { return regexp.MustCompile("`" + program + "(?: [^`]*)?`") }

// split cuts a command into its arguments, and off what a shell would not pass to
// it. It is not ok for a command whose quotes do not match.
func split(command string) (args []string, rest string, ok bool) {
	for i := 0; i < len(command); {
		switch c := command[i]; {
		case c == ' ':
			i++
		case strings.IndexByte("|<>;&", c) >= 0:
			return args, " " + command[i:], true
		default:
			arg, n, ok := word(command[i:])
			if !ok {
				return nil, "", false
			}
			args, i = append(args, arg), i+n
		}
	}
	return args, "", true
}

// word reads one argument and returns its value and length in text.
func word(text string) (value string, length int, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		switch {
		case rest[0] == ' ' || strings.IndexByte("|<>;&", rest[0]) >= 0:
			return b.String(), i, true
		case strings.HasPrefix(rest, "$'"):
			part, n, ok := escaped(rest[2:])
			if !ok {
				return "", 0, false
			}
			b.WriteString(part)
			i += 2 + n
		case rest[0] == '\'':
			part, _, closed := strings.Cut(rest[1:], "'")
			if !closed {
				return "", 0, false
			}
			b.WriteString(part)
			i += len(part) + 2
		case rest[0] == '"':
			part, n, ok := doubled(rest[1:])
			if !ok {
				return "", 0, false
			}
			b.WriteString(part)
			i += 1 + n
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteByte(rest[1])
			i += 2
		default:
			b.WriteByte(rest[0])
			i++
		}
	}
	return b.String(), len(text), true
}

// doubled reads to the end of double quotes, in which a backslash is one unless a
// special character follows.
func doubled(text string) (value string, length int, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return b.String(), i + 1, true
		case text[i] == '\\' && i+1 < len(text) && strings.IndexByte("\"\\$", text[i+1]) >= 0:
			i++
		}
		b.WriteByte(text[i])
	}
	return "", 0, false
}
