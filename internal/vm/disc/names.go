package disc

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// maxName is the length of the longest name that Joliet has, in UCS-2 characters.
	maxName = 64
	// joliet lists the characters that Joliet refuses, besides control characters.
	joliet = `*?:\;/`
	// windows lists further characters that Windows refuses.
	windows = `<>|"`
)

// checkPath returns an error if Joliet or Windows does not permit a path.
func checkPath(file string) error {
	names := strings.Split(file, "/")
	switch {
	case !utf8.ValidString(file):
		return refuse(file, "the name is not UTF-8; rename it")
	case utf8.RuneCountInString(file) > MaxPath:
		return refuse(file, "the path has more than %d characters; shorten its folders", MaxPath)
	}
	for _, name := range names {
		if reason := checkName(name); reason != "" {
			return refuse(file, "%s; rename it", reason)
		}
	}
	return nil
}

// checkName returns the reason why no file can have this name, or "" if a file can have it.
func checkName(name string) string {
	length := 0
	for _, r := range name {
		switch {
		case r < ' ' || r == 0x7f:
			return "the name has a control character"
		case strings.ContainsRune(joliet, r), strings.ContainsRune(windows, r):
			return fmt.Sprintf("the name has the character %q, which Windows refuses", r)
		case r > 0xffff:
			return fmt.Sprintf("the name has the character %q, which UCS-2 lacks", r)
		}
		length++
	}
	switch {
	case name == "" || name == "." || name == "..":
		return fmt.Sprintf("%q is no name of a file", name)
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "the name ends in a dot or a space, which Windows removes"
	case length > maxName:
		return fmt.Sprintf("the name has %d characters, and Joliet allows %d", length, maxName)
	}
	return ""
}

// fold returns a name as Windows compares it.
func fold(name string) string { return strings.ToUpper(name) }

// split returns a name's parts before and behind its last dot.
func split(name string) (base, extension string) {
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		return name[:dot], name[dot+1:]
	}
	return name, ""
}

// byParts orders names as Joliet does: by the part before the last dot, then by the part
// after it.
func byParts(a, b string) int {
	aBase, aExtension := split(a)
	bBase, bExtension := split(b)
	return cmp.Or(strings.Compare(aBase, bBase), strings.Compare(aExtension, bExtension))
}
