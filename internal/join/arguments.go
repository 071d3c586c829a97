package join

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/commandline"
)

// argumentsChange returns a text that lists only the arguments in which two command lines differ:
// kubelet's command line has twenty flags, of which usually one has changed.
func argumentsChange(before, after string) string {
	gone, come := arguments(before), arguments(after)
	if len(gone) > 0 && len(come) > 0 && !strings.EqualFold(gone[0], come[0]) { // another program
		return gone[0] + " → " + come[0]
	}
	gone, come = without(gone, come), without(come, gone)
	var parts []string
	for _, arg := range gone {
		i := slices.IndexFunc(come, func(other string) bool { return flag(other) == flag(arg) })
		if i < 0 {
			parts = append(parts, "without "+arg)
			continue
		}
		parts = append(parts, arg+" → "+strings.TrimPrefix(come[i], flag(arg)+"="))
		come = slices.Delete(come, i, i+1)
	}
	for _, arg := range come {
		parts = append(parts, "with "+arg)
	}
	const most = 4
	switch {
	case len(parts) == 0:
		return "the order of its arguments"
	case len(parts) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(parts[:most], ", "), len(parts)-most)
	}
	return strings.Join(parts, ", ")
}

// arguments returns a command line's arguments, each flag with the value that follows it.
func arguments(line string) []string {
	var all []string
	for _, arg := range commandline.Split(line) {
		last := len(all) - 1
		if last > 0 && strings.HasPrefix(all[last], "--") && !strings.ContainsAny(all[last], "= ") &&
			!strings.HasPrefix(arg, "--") {
			all[last] += "=" + arg
			continue
		}
		all = append(all, arg)
	}
	return all
}

func flag(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return name
}

func without(args, others []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return slices.Contains(others, arg) })
}
