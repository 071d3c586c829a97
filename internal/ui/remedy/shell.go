package remedy

import (
	"fmt"
	"strconv"
	"strings"
)

// Shell is a family of shells with the same quoting rules.
type Shell int

const (
	// POSIX stands for sh, bash, zsh and other shells that support $'…'.
	POSIX Shell = iota
	// Windows stands for PowerShell and cmd.
	Windows
)

// Join returns args as a command line for the shell.
func (s Shell) Join(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = s.Quote(arg)
	}
	return strings.Join(words, " ")
}

// Quote returns an argument quoted for the shell, with quotes only if it needs them.
func (s Shell) Quote(arg string) string {
	special := strings.IndexFunc(arg, func(r rune) bool { return !s.plain(r) })
	switch {
	case arg != "" && special < 0 && !(s == Windows && strings.HasPrefix(arg, "@")):
		return arg
	case s == Windows && !strings.ContainsAny(arg, "\"$%`“”„"): // PowerShell ends a string at typographic quotes too
		return `"` + arg + `"`
	case s == Windows: // cmd cannot quote every argument, so quote for PowerShell
		return "'" + strings.NewReplacer("'", "''", "‘", "‘‘", "’", "’’", "‚", "‚‚", "‛", "‛‛").Replace(arg) + "'"
	case strings.ContainsFunc(arg, unprintable):
		return escape(arg)
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// plain reports whether the shell reads r literally everywhere in a word.
func (s Shell) plain(r rune) bool {
	switch {
	case '0' <= r && r <= '9', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', strings.ContainsRune("-_./:=+@,…", r):
		return s == POSIX || r != ','
	}
	return s == Windows && r == '\\'
}

// unprintable reports whether r cannot be in single quotes inside backquotes on one line.
func unprintable(r rune) bool { return r < ' ' || r == 0x7f || r == '`' || r == '\uFFFD' }

// escape returns an argument as $'…'. It escapes every byte that is not printable ASCII.
func escape(arg string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(arg) {
		switch c := arg[i]; {
		case c < ' ' || c >= 0x7f || c == '`':
			fmt.Fprintf(&b, `\%03o`, c)
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

// escaped parses an argument that escape wrote. Its input begins after the $' of this argument.
func escaped(text string) (value string, length int, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\'':
			return b.String(), i + 1, true
		case text[i] != '\\':
			b.WriteByte(text[i])
		case i+4 <= len(text) && '0' <= text[i+1] && text[i+1] <= '3':
			c, err := strconv.ParseUint(text[i+1:i+4], 8, 8)
			if err != nil {
				return "", 0, false
			}
			b.WriteByte(byte(c))
			i += 3
		case i+1 < len(text):
			i++
			b.WriteByte(text[i])
		}
	}
	return "", 0, false
}
