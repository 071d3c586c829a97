// Package servicelog finds the logs of Windows services.
package servicelog

import (
	"strings"

	"github.com/swdt-dev/swdt/internal/format/commandline"
)

// Paths returns the files that a service may log to, the likeliest first: the files that its
// command line sets, then the files that the usual installers set.
func Paths(service, commandLine string) []string {
	return append(Configured(service, commandLine), Usual(service)...)
}

// Configured returns the files that a command line sets with --log-file or --log-dir.
func Configured(service, commandLine string) []string {
	var paths []string
	args := commandline.Split(commandLine)
	for i, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			continue
		}
		name, value, assigned := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !assigned && i+1 < len(args) {
			value = args[i+1]
		}
		switch strings.ReplaceAll(name, "_", "-") {
		case "log-file":
			paths = append(paths, value)
		case "log-dir":
			paths = append(paths, value+`\`+service+".INFO", value+`\`+service+".exe.INFO")
		}
	}
	return paths
}

// Usual returns the log files that the usual installers configure for services.
func Usual(service string) []string {
	var paths []string
	for _, folder := range []string{`C:\var\log\` + service, `C:\var\log`, `C:\k\logs`} {
		paths = append(paths, folder+`\`+service+".log", folder+`\`+service+".err.log")
	}
	return paths
}
