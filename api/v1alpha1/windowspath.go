package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Limits of a path, and of one name in a path, in UTF-16 units. Windows accepts paths of 259
// characters without special measures. The limits are lower, since swdt stages a new binary
// beside its destination under a longer name.
const (
	maxPath      = 240
	maxComponent = 235
)

// PathError says why a Windows path is refused.
type PathError struct {
	Path   string
	What   string // the fault of the path
	Remedy string // the correct form
}

func (e *PathError) Error() string {
	quoted := `"` + e.Path + `"` // not %q, which would double every backslash
	if strings.ContainsFunc(e.Path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		quoted = strconv.Quote(e.Path)
	}
	return fmt.Sprintf("path %s %s; %s", quoted, e.What, e.Remedy)
}

// CleanWindowsPath returns the absolute path of a file or folder on a Windows machine in its usual form: backslashes,
// none doubled, none at the end except in a drive's root; case and spaces do not change. It returns a *PathError for
// a path that is not absolute and plain: .., network and device paths, reserved names, alternate data streams,
// forbidden characters, and names that Windows would silently change.
func CleanWindowsPath(path string) (string, error) {
	refuse := func(what, remedy string) (string, error) {
		return "", &PathError{Path: path, What: what, Remedy: remedy}
	}
	if what, remedy := checkCharacters(path); what != "" {
		return refuse(what, remedy)
	}
	slashed := strings.ReplaceAll(path, "/", `\`)
	if what, remedy := checkRoot(slashed); what != "" {
		return refuse(what, remedy)
	}

	drive, rest := slashed[:2], slashed[2:]
	var components []string
	for component := range strings.SplitSeq(rest, `\`) {
		if component == "" {
			continue
		}
		if what, remedy := checkComponent(component); what != "" {
			return refuse(what, remedy)
		}
		components = append(components, component)
	}
	clean := drive + `\` + strings.Join(components, `\`)
	if length := windowsLength(clean); length > maxPath {
		return refuse(fmt.Sprintf("is %d characters long", length), fmt.Sprintf("use at most %d", maxPath))
	}
	return clean, nil
}

// checkCharacters rejects characters that no Windows path contains. Control characters come from YAML's double
// quotes, where \n, \b, \t and others are escapes.
func checkCharacters(path string) (what, remedy string) {
	for _, r := range path {
		switch {
		case r < ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029':
			return fmt.Sprintf("has the control character %U", r),
				`in double quotes \n, \b, \t and the like are escapes: write the path without quotes or in single quotes`
		case r == '\ufffd':
			return "is not valid UTF-8", "save the file as UTF-8"
		case strings.ContainsRune(`<>"|?*`, r):
			return fmt.Sprintf("has the character %c, which Windows forbids in file names", r), "remove it"
		}
	}
	return "", ""
}

// checkRoot rejects a path that does not begin with a drive. The path's separators must be backslashes.
func checkRoot(path string) (what, remedy string) {
	const absolute = `write an absolute path such as C:\k\kubelet.exe`
	switch {
	case path == "":
		return "is empty", absolute
	case strings.HasPrefix(path, `\\.\`) || strings.HasPrefix(path, `\\?\`) || strings.HasPrefix(path, `\??\`):
		return "is a device path", absolute
	case strings.HasPrefix(path, `\\`):
		return "is a network path", "write a path on a drive of the node, such as " + `C:\k\kubelet.exe`
	case strings.HasPrefix(path, "%") || strings.HasPrefix(strings.ToLower(path), "$env:"):
		return "begins with an environment variable, which is not expanded", absolute
	case len(path) < 2 || path[1] != ':' || !isLetter(path[0]):
		return "is relative", absolute
	case len(path) == 2 || path[2] != '\\':
		return "is relative to the current folder of drive " + strings.ToUpper(path[:2]), absolute
	}
	return "", ""
}

// checkComponent checks one name between two backslashes.
func checkComponent(name string) (what, remedy string) {
	switch {
	case name == "." || name == "..":
		return "has the component " + name, "write the path without it"
	case strings.Contains(name, ":"):
		return "names an alternate data stream (a colon after the drive)", "remove the colon"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return fmt.Sprintf("has the name %q, and Windows drops dots and spaces at the end of a name", name),
			"remove them"
	case isDeviceName(name):
		return fmt.Sprintf("has the name %q, which Windows reserves for a device", name), "use another name"
	case windowsLength(name) > maxComponent:
		return fmt.Sprintf("has a name of %d characters", windowsLength(name)),
			fmt.Sprintf("use at most %d", maxComponent)
	}
	return "", ""
}

// isDeviceName reports whether Windows opens a device instead of a file of this name, as for nul, NUL.exe and
// "con .txt". See "Naming Files, Paths, and Namespaces" on learn.microsoft.com.
func isDeviceName(name string) bool {
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	base = strings.TrimRight(base, " ")
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	number, isCOM := strings.CutPrefix(base, "COM")
	if !isCOM {
		var isLPT bool
		if number, isLPT = strings.CutPrefix(base, "LPT"); !isLPT {
			return false
		}
	}
	switch number {
	case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³":
		return true
	}
	return false
}

func endsInSeparator(path string) bool {
	return strings.HasSuffix(path, `\`) || strings.HasSuffix(path, "/")
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// windowsLength returns the length of s in UTF-16 units, in which Windows counts.
func windowsLength(s string) int { return len(utf16.Encode([]rune(s))) }
