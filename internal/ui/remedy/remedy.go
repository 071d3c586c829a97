// Package remedy writes commands of swdt and of kubectl that a person can paste into a
// shell.
//
// A text that proposes a command contains the command in backquotes: "see why: `swdt logs
// kubelet`". Inside the backquotes, the command is quoted for a POSIX shell. The command names no
// node and no node file, since the packages that write such texts know neither. The command line
// (internal/cli) finds these commands with Rewrite, adds the flags of the invocation, and
// quotes the result for the user's shell.
package remedy

import (
	"regexp"
	"strings"
)

// The first words of the commands that Rewrite finds.
const (
	Swdt    = "swdt"
	Kubectl = "kubectl"
)

// Command returns a command of swdt in backquotes, for a text that proposes it. The
// arguments may be arbitrary text, such as names that a node reported.
func Command(args ...string) string {
	return commandOf(Swdt, args)
}

// KubectlCommand is Command for kubectl.
func KubectlCommand(args ...string) string { return commandOf(Kubectl, args) }

func commandOf(program string, args []string) string {
	return "`" + POSIX.Join(append([]string{program}, args...)) + "`"
}

// Rewrite passes the arguments of each command in text to the given function, and replaces the
// command by the function's result. The first argument is Swdt or Kubectl. Text after the command
// in the same backquotes, such as a redirection, stays.
func Rewrite(text string, line func(args []string) string) string {
	return quoted().ReplaceAllStringFunc(text, func(whole string) string {
		args, rest, ok := split(whole[1 : len(whole)-1])
		if !ok {
			return whole
		}
		return "`" + line(args) + rest + "`"
	})
}

// Commands returns the arguments of each command in text. The first argument is Swdt or
// Kubectl.
func Commands(text string) (all [][]string) {
	Rewrite(text, func(args []string) string {
		all = append(all, args)
		return ""
	})
	return all
}

func quoted() *regexp.Regexp {
	return regexp.MustCompile("`(?:" + Swdt + "|" + Kubectl + ")(?: [^`]*)?`")
}

// split splits a command into its arguments and the rest, such as a redirection, which a shell does
// not pass to the program. ok is false for a command with unmatched quotes.
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

// doubled reads to the end of double quotes, inside which a backslash is literal unless a
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
