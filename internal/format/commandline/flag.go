package commandline

import (
	"strconv"
	"strings"
)

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

// Switch reports whether a flag with a boolean value is on in a program that parses flags as Kubernetes' programs do
// (github.com/spf13/pflag): the last of several counts, a value follows an equals sign, and a flag without one is on.
func Switch(line, name string) (on bool) {
	for _, arg := range Split(line) {
		given, value, assigned := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if given != name || !strings.HasPrefix(arg, "-") {
			continue
		}
		parsed, err := strconv.ParseBool(value)
		on = !assigned || err == nil && parsed // the program does not start with a value that is none
	}
	return on
}
