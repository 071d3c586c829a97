package simulated

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const systemDrive = "C:"

// splitPath splits a Windows path into its folders and name as spelled, and
// returns the path cleaned (backslashes, no . or ..). A path without a drive,
// or with characters that Windows refuses, is an error. The rules are those of "Naming Files, Paths, and Namespaces" on
// learn.microsoft.com: forbidden characters, those below 32 too; no dot or space at the end of a name; 255 characters of
// UTF-16 in a name. Reserved names (CON, NUL…) are no error here: api/v1alpha1 refuses them before a node is asked.
func splitPath(path string) (parts []string, clean string, err error) {
	bad := func(why string) ([]string, string, error) {
		return nil, "", fmt.Errorf("path %q: %s: %w", path, why, fs.ErrInvalid)
	}
	p := strings.ReplaceAll(path, "/", `\`)
	p = strings.TrimPrefix(p, `\\?\`)
	if len(p) < 3 || p[1] != ':' || p[2] != '\\' || !isLetter(p[0]) {
		return bad("not absolute")
	}
	for part := range strings.SplitSeq(p[3:], `\`) {
		switch part {
		case "", ".":
			continue
		case "..":
			if len(parts) > 0 {
				parts = parts[:len(parts)-1]
			}
			continue
		}
		if strings.ContainsAny(part, `<>:"|?*`) || strings.ContainsFunc(part, func(r rune) bool { return r < ' ' }) ||
			len(utf16.Encode([]rune(part))) > 255 {
			return bad("the name or its syntax is incorrect")
		}
		trimmed := strings.TrimRight(part, ". ")
		if trimmed == "" {
			return bad("the name or its syntax is incorrect")
		}
		parts = append(parts, trimmed)
	}
	clean = p[:2] + `\` + strings.Join(parts, `\`)
	if !strings.EqualFold(p[:2], systemDrive) {
		return nil, clean, fmt.Errorf("path %q: no such drive: %w", path, fault.ErrNotExist)
	}
	return parts, clean, nil
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// fold returns a name in the form in which names are compared: without regard to case. NTFS has a table of its own
// ($UpCase), which differs for a few letters outside of ASCII.
func fold(name string) string { return strings.ToLower(name) }

// now returns the time with NTFS's precision, that of FILETIME.
func now() time.Time { return fileTime(time.Now()) }

func fileTime(t time.Time) time.Time { return t.UTC().Truncate(100 * time.Nanosecond) }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
