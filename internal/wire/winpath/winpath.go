// Package winpath checks paths and names of Windows. Your machine checks those in a node's replies, and the agent those
// in its own files.
package winpath

import "strings"

// Longest is the longest path of Windows, 32767 UTF-16 units, which take at most three bytes each.
const Longest = 3 * 32767

// Problem returns the reason why a path is not an absolute path on a drive, which identifies exactly one file; "" if it
// is one.
func Problem(path string) string {
	letter := len(path) >= 3 && (path[0]|0x20 >= 'a' && path[0]|0x20 <= 'z')
	if !letter || path[1:3] != `:\` || len(path) > Longest {
		return "not an absolute path on a drive"
	}
	names := path[3:]
	if names == "" {
		return ""
	}
	for name := range strings.SplitSeq(names, `\`) {
		if problem := nameProblem(name); problem != "" {
			return problem
		}
	}
	return ""
}

// nameProblem returns the reason why Windows cannot have a file of this name; "" if it can.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "with an empty name"
	case name == "." || name == "..":
		return "with the name " + name
	case strings.ContainsFunc(name, IsControl):
		return "with a control character"
	case strings.ContainsAny(name, `/:<>"|?*`):
		return "with a character that Windows has in no name"
	}
	return ""
}

// IsControl reports whether a character changes how a terminal or a file of lines shows the text around it.
func IsControl(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029'
}
