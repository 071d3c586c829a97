package commandline

import "strings"

// Flag returns the value of a flag of a program that parses flags as Go does:
// --name=value or --name value, with one dash or two. It returns "" if the flag
// is missing or has no value.
func Flag(line, name string) string {
	args := Split(line)
	for i, arg := range args {
		given, value, assigned := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if given != name || !strings.HasPrefix(arg, "-") {
			continue
		}
		if !assigned && i+1 < len(args) && IsValue(args[i+1]) {
			value = args[i+1]
		}
		return value
	}
	return ""
}
