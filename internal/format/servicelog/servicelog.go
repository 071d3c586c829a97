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

// Configured returns the files that a command line sets with --log-file, --logfile or --log-dir.
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
		case "log-file", "logfile": // logfile: the hybrid overlay of OVN-Kubernetes
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

// IsRotated reports whether a file's name is that of an older part of a log, which a rotation has made. The names are
// without folders. Such a name has a number or a time before one of the log's extensions or behind the last one:
//
//	kubelet.log: kubelet-20261129-010500.log (kube-log-runner), kubelet-2026-11-29T01-05-00.000.log (lumberjack)
//	kubelet.log: kubelet.log.1 and kubelet.log-20261129 (logrotate), also compressed: kubelet.log.2.gz
//	kubelet.err.log: kubelet.err-20261129T010500.123.log (nssm), kubelet.1.err.log (WinSW)
func IsRotated(log, name string) bool {
	log, name = strings.ToLower(log), strings.ToLower(name)
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zip")
	for at := range len(log) + 1 {
		if at < len(log) && log[at] != '.' {
			continue
		}
		if rest, ok := strings.CutPrefix(name, log[:at]); ok {
			if mark, ok := strings.CutSuffix(rest, log[at:]); ok && isMark(mark) {
				return true
			}
		}
	}
	return false
}

// IsCompressed reports whether a file's name is that of a compressed file.
func IsCompressed(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".zip")
}

// isMark reports whether a text is what a rotation adds to a name: a number of up to three digits, or a time.
func isMark(text string) bool {
	const (
		digits = "0123456789"
		day    = len("20060102")
	)
	if number, ok := strings.CutPrefix(text, "."); ok && number != "" && len(number) <= 3 {
		return strings.Trim(number, digits) == ""
	}
	count := len(text) - len(strings.Map(func(r rune) rune {
		if strings.ContainsRune(digits, r) {
			return -1
		}
		return r
	}, text))
	return len(text) > 0 && strings.ContainsRune(".-_", rune(text[0])) && count >= day && len(text) <= 2*len("2006-01-02T15-04-05") &&
		strings.Trim(text, digits+".-_+tz") == ""
}
