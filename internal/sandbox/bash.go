package sandbox

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// assignment is a variable before a command, as in NAME=value command.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// convertPaths does what the runtime of Git's bash does with the words of a command: it removes the assignments, and
// converts arguments that look like POSIX paths to Windows paths, so that cmd's /c becomes C:/. The variable
// MSYS_NO_PATHCONV of Git for Windows, or MSYS2_ARG_CONV_EXCL of MSYS2, switches the conversion off
// (msys2/msys2-runtime#181, git-for-windows/git#2862).
func convertPaths(words []string) []string {
	convert := true
	for len(words) > 0 && assignment.MatchString(words[0]) {
		name, _, _ := strings.Cut(words[0], "=")
		convert = convert && name != "MSYS_NO_PATHCONV" && name != "MSYS2_ARG_CONV_EXCL"
		words = words[1:]
	}
	if !convert || len(words) == 0 {
		return words
	}
	converted := []string{words[0]}
	for _, word := range words[1:] {
		if len(word) >= 2 && word[0] == '/' && isDrive(word[1:2]+":") && (len(word) == 2 || word[2] == '/') {
			word = strings.ToUpper(word[1:2]) + ":/" + strings.TrimPrefix(word[2:], "/")
		}
		converted = append(converted, word)
	}
	return converted
}

// bashNotFound prints the error message of bash for a missing program, and returns bash's exit code.
func bashNotFound(stderr io.Writer, name string) int {
	reason := "command not found"
	if strings.Contains(name, "/") {
		reason = "No such file or directory"
	}
	fmt.Fprintf(stderr, "bash: line 1: %s: %s\n", name, reason)
	return 127
}
