package settings

import (
	"slices"
	"strings"
)

// editPath removes and appends folders of a PATH. What it does not remove keeps
// its bytes and its order, empty entries and quotes included.
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

// splitPath splits at semicolons, but not at those in quotes. Joined again with
// semicolons the parts are the path.
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

// sameFolder compares as Windows finds folders: without case, quotes, a closing
// slash, and with either slash.
func sameFolder(a, b string) bool { return strings.EqualFold(plainFolder(a), plainFolder(b)) }

func plainFolder(folder string) string {
	folder = strings.ReplaceAll(strings.TrimSpace(folder), `"`, "")
	return strings.TrimRight(strings.ReplaceAll(folder, "/", `\`), `\`)
}
