package discfs

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// problemOf returns the reason why a name is refused, or "". Windows itself cannot make a file with
// a refused name. In a hostile image, such a name could lead out of a folder when files are copied,
// or control a terminal.
func problemOf(name string) string {
	switch {
	case name == "" || name == "." || name == "..":
		return fmt.Sprintf("an entry has the name %q", name)
	case !utf8.ValidString(name):
		return fmt.Sprintf("the name %q is not valid text", name)
	case strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Sprintf("the name %q has a character that no file name may have", name)
	}
	return ""
}

// folded returns the form of a name in which names that differ only in case are equal.
func folded(name string) string { return strings.ToUpper(name) }
