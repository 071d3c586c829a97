package commandline

import "strings"

// argument is one argument and its position in the command line. The position includes quotes.
type argument struct {
	text       string
	start, end int
}

func arguments(line string) []argument {
	var all []argument
	rest := strings.TrimLeft(line, " \t")
	for rest != "" {
		start := len(line) - len(rest)
		var text string
		text, rest = nextArgument(rest, len(all) == 0)
		all = append(all, argument{text, start, len(line) - len(rest)})
		rest = strings.TrimLeft(rest, " \t")
	}
	return all
}

// Set returns the command line with another value for a program's flag, which may occur under any
// of these names. If the flag occurs several times, Set changes its last occurrence. Arguments
// before the program, such as the flags of a wrapper, stay unchanged. If the flag is missing, Set
// appends it under the first name. Such a flag, and one that had no value, gets an equal sign. ok is
// false if the command line does not run the program.
func Set(line, program, value string, names ...string) (changed string, ok bool) {
	all := arguments(line)
	at := indexOfProgram(all, program)
	if at < 0 {
		return line, false
	}
	for i := len(all) - 1; i > at; i-- { // the program uses the last of several flags
		given, _, assigned := strings.Cut(all[i].text, "=")
		if !isFlag(given, names) {
			continue
		}
		if !assigned && i+1 < len(all) && IsValue(all[i+1].text) {
			return line[:all[i+1].start] + Quote(value) + line[all[i+1].end:], true
		}
		return line[:all[i].start] + Quote(given+"="+value) + line[all[i].end:], true
	}
	return strings.TrimRight(line, " \t") + " " + Quote("--"+names[0]+"="+value), true
}

// Change returns the command line with other values for a program's flag, which may occur under any of these names and
// several times. change gets each value, the last one first, and returns the new value, or false to remove the flag. The
// value of a flag that has none is true, as boolean flags are read. ok is false if the command line does not run the
// program.
func Change(line, program string, change func(value string) (string, bool), names ...string) (changed string, ok bool) {
	all := arguments(line)
	at := indexOfProgram(all, program)
	if at < 0 {
		return line, false
	}
	for i := len(all) - 1; i > at; i-- {
		given, value, assigned := strings.Cut(all[i].text, "=")
		if !isFlag(given, names) {
			continue
		}
		last := i
		switch {
		case assigned:
		case i+1 < len(all) && IsValue(all[i+1].text):
			last, value = i+1, all[i+1].text
		default:
			value = "true"
		}
		after, keep := change(value)
		switch {
		case !keep:
			line = strings.TrimRight(line[:all[i].start], " \t") + line[all[last].end:]
		case after == value:
		case last == i:
			line = line[:all[i].start] + Quote(given+"="+after) + line[all[i].end:]
		default:
			line = line[:all[last].start] + Quote(after) + line[all[last].end:]
		}
	}
	return line, true
}

// Has reports whether a flag follows the program in the command line, under any of these names.
func Has(line, program string, names ...string) bool {
	all := arguments(line)
	at := indexOfProgram(all, program)
	if at < 0 {
		return false
	}
	for _, arg := range all[at+1:] {
		if given, _, _ := strings.Cut(arg.text, "="); isFlag(given, names) {
			return true
		}
	}
	return false
}

// IsValue reports whether the argument behind a flag without an equal sign is its value, and no flag of its own. A
// negative number is a value.
func IsValue(arg string) bool {
	number := len(arg) > 1 && arg[1] >= '0' && arg[1] <= '9'
	return !strings.HasPrefix(arg, "-") || number
}

func isFlag(given string, names []string) bool {
	bare := strings.TrimLeft(given, "-")
	for _, name := range names {
		if bare == name && bare != given {
			return true
		}
	}
	return false
}

// indexOfProgram returns the index of the argument whose file name is the program's, or -1. A
// path with spaces but without quotes is several arguments, and the last of them has the file
// name.
func indexOfProgram(all []argument, program string) int {
	for i, arg := range all {
		file := arg.text[strings.LastIndexAny(arg.text, `\/`)+1:]
		if strings.EqualFold(file, program) || strings.EqualFold(file+".exe", program) {
			return i
		}
	}
	return -1
}
