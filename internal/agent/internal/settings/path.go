package settings

import (
	"slices"
	"strings"
)

// editPath removes folders from a PATH and appends folders to it. The remaining
// folders keep their bytes and their order, including empty entries and quotes.
func editPath(path string, add, remove []string) string {
	entries := splitPath(path)
	kept := slices.DeleteFunc(slices.Clone(entries), func(entry string) bool {
		return entry != "" && hasFolder(remove, entry)
	})
	if len(kept) != len(entries) {
		path = strings.Join(kept, ";")
	}
	for _, folder := range add {
		if hasFolder(kept, folder) {
			continue
		}
		kept = append(kept, folder)
		if path != "" && !strings.HasSuffix(path, ";") {
			path += ";"
		}
		path += folder
	}
	return path
}

// splitPath splits a path at the semicolons outside quotes. Joining the parts
// with semicolons restores the path.
func splitPath(path string) []string {
	if path == "" {
		return nil
	}
	var entries []string
	start, quoted := 0, false
	for i := range len(path) {
		switch {
		case path[i] == '"':
			quoted = !quoted
		case path[i] == ';' && !quoted:
			entries = append(entries, path[start:i])
			start = i + 1
		}
	}
	return append(entries, path[start:])
}

func hasFolder(folders []string, folder string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return sameFolder(f, folder) })
}

// sameFolder compares folders as Windows does: it ignores case, quotes, a
// trailing slash, and the kind of slash.
func sameFolder(a, b string) bool { return strings.EqualFold(plainFolder(a), plainFolder(b)) }

func plainFolder(folder string) string {
	folder = strings.ReplaceAll(strings.TrimSpace(folder), `"`, "")
	return strings.TrimRight(strings.ReplaceAll(folder, "/", `\`), `\`)
}
