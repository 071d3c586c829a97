package commandline

import "strings"

// Flag is the value of a flag of a program that reads them as Go's do: --name=value
// or --name value, with one dash or two. Empty: it is not there, or has no value.
func Flag(line, name string) string {
	args := Split(line)
	for i, arg := range args {
		given, value, assigned := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if given != name || !strings.HasPrefix(arg, "-") {
			continue
		}
		if !assigned && i+1 < len(args) {
			value = args[i+1]
		}
		return value
	}
	return ""
}
