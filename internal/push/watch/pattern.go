package watch

import (
	"path"
	"strings"
)

// pattern is a path below a folder, split at its slashes: ** stands for any
// number of folders, * and ? for parts of a name.
type pattern []string

func newPattern(text string) pattern {
	return strings.Split(path.Clean(text), "/")
}

// matches reports whether the pattern matches the whole path.
func (p pattern) matches(segments []string) bool {
	if len(p) == 0 {
		return len(segments) == 0
	}
	if p[0] == "**" {
		for skip := range len(segments) + 1 {
			if skip > 0 && needsFullName(segments[skip-1]) {
				return false
			}
			if p[1:].matches(segments[skip:]) {
				return true
			}
		}
		return false
	}
	return len(segments) > 0 && matchName(p[0], segments[0]) && p[1:].matches(segments[1:])
}

// canMatchBelow reports whether something in this folder, or below it, can match.
func (p pattern) canMatchBelow(folder []string) bool {
	switch {
	case len(folder) == 0:
		return len(p) > 0
	case len(p) == 0:
		return false
	case p[0] == "**":
		for skip := range folder {
			if p[1:].canMatchBelow(folder[skip:]) {
				return true
			}
			if needsFullName(folder[skip]) {
				return false
			}
		}
		return true
	}
	return matchName(p[0], folder[0]) && p[1:].canMatchBelow(folder[1:])
}

func matchName(pattern, name string) bool {
	if needsFullName(name) && pattern != name {
		return false
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil // err is nil: an invalid pattern is refused when the node file is read
}

// needsFullName reports whether a pattern must spell the name in full to match it. Such names
// belong to files that tools keep beside the sources, and to folders of third-party sources.
func needsFullName(name string) bool {
	return strings.HasPrefix(name, ".") || name == "vendor" || name == "node_modules"
}
