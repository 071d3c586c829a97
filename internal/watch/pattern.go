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

// matches is whether the pattern is the whole of a path.
func (p pattern) matches(segments []string) bool {
	if len(p) == 0 {
		return len(segments) == 0
	}
	if p[0] == "**" {
		for skip := range len(segments) + 1 {
			if skip > 0 && hidden(segments[skip-1]) {
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

// leadsInto is whether something in this folder, or below it, can match.
func (p pattern) leadsInto(folder []string) bool {
	switch {
	case len(folder) == 0:
		return len(p) > 0
	case len(p) == 0:
		return false
	case p[0] == "**":
		for skip := range folder {
			if p[1:].leadsInto(folder[skip:]) {
				return true
			}
			if hidden(folder[skip]) {
				return false
			}
		}
		return true
	}
	return matchName(p[0], folder[0]) && p[1:].leadsInto(folder[1:])
}

func matchName(pattern, name string) bool {
	if hidden(name) && pattern != name {
		return false
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil // a pattern that is none was refused with the node file
}

// hidden are names that only a pattern that has them in full can match: what
// tools keep beside sources, and other people's sources.
func hidden(name string) bool {
	return strings.HasPrefix(name, ".") || name == "vendor" || name == "node_modules"
}
