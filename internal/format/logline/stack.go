package logline

import (
	"slices"
	"strings"
)

// WithoutStacks returns the lines of a log without the stack traces of Go programs. A trace begins with a line such as
// "goroutine 1 [running]:" and ends before an empty line or a line that is no frame. Its message, such as "panic: …",
// is before it and stays, so that the last lines of the log of a program that has crashed have its cause.
func WithoutStacks(lines []string) []string {
	inside := false
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		switch {
		case strings.HasPrefix(line, "goroutine ") && strings.HasSuffix(line, "]:"):
			inside = true
		case inside && !isFrame(line):
			inside = false
		}
		return inside
	})
}

// isFrame reports whether a line can be one of the two lines of a frame: a function with its arguments, or its place.
func isFrame(line string) bool {
	return strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "created by ") ||
		strings.HasSuffix(line, ")") && strings.Contains(line, "(")
}
