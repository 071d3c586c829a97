package main

import "strings"

// mount is a folder of this machine that a container has at another place.
type mount struct {
	Destination string `json:"destination"`
	Source      string `json:"source"`
}

// mounted returns an argument of a process in which the path of a mounted folder of the container is replaced by
// that on this machine: Wine makes no symbolic links, and all containers have the same drive C. It knows a
// path that is a whole argument, and a file's URL, such as file:///C:/data/x.
func mounted(mounts []mount, arg string) string {
	const scheme = "file:///"
	path, isURL := strings.CutPrefix(arg, scheme)
	path = strings.ReplaceAll(path, "/", `\`)
	for _, m := range mounts {
		inside, ok := cutPath(path, m.Destination)
		switch {
		case !ok:
		case isURL:
			return scheme + strings.ReplaceAll(m.Source+inside, `\`, "/")
		default:
			return m.Source + inside
		}
	}
	return arg
}

// emptyDirs returns the mounts of emptyDir volumes. Most other volumes have symbolic links in them, which Wine lacks.
func emptyDirs(all []mount) (some []mount) {
	for _, m := range all {
		if strings.Contains(m.Source, "kubernetes.io~empty-dir") {
			m.Source = onDrive(m.Source) // a file's URL cannot have another form
			some = append(some, m)
		}
	}
	return some
}

// onDrive returns a path with its drive. containerd resolves paths, and after a restart of the machine Wine answers
// with the name of a volume, such as \\?\Volume{GUID}\var. The lab's machines have one volume for kubelet's files.
func onDrive(path string) string {
	path = strings.TrimPrefix(path, `\\?\`)
	if volume, rest, ok := strings.Cut(path, `}\`); ok && strings.HasPrefix(volume, "Volume{") {
		return `C:\` + rest
	}
	return path
}

// cutPath returns the part of a path after a folder, and reports whether the path is in it. Names on Windows are
// equal whatever their case.
func cutPath(path, folder string) (rest string, ok bool) {
	folder = strings.TrimRight(folder, `\`)
	if folder == "" || len(path) < len(folder) || !strings.EqualFold(path[:len(folder)], folder) {
		return "", false
	}
	rest = path[len(folder):]
	return rest, rest == "" || rest[0] == '\\'
}
