//go:build e2e && linux

package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// upState is everything that `swdt up` may change on this machine and on the node, byte for byte. The
// keys are the names of files and of objects of Docker.
type upState map[string]string

// upStateOf returns the state of Docker, of swdt's folders on this machine, of this machine's hosts
// file, and of the node's disk.
func upStateOf(t *testing.T, prefix string) upState {
	t.Helper()
	state := upState{}
	state.addDocker(t)
	state.addTree(t, "home", os.Getenv("HOME"))
	state.addTree(t, "cache", filepath.Join(cacheHome(t), "swdt"))
	state.addTree(t, "hosts", "/etc/hosts")
	state.addTree(t, "node", filepath.Join(prefix, "drive_c"))
	return state
}

// addDocker adds the containers, volumes and networks as Docker describes them, and the images
// with their tags.
func (s upState) addDocker(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"container", "volume", "network"} {
		list := []string{kind, "ls", "--quiet"}
		if kind == "container" {
			list = append(list, "--all", "--no-trunc")
		}
		for _, id := range strings.Fields(run(t, "docker", list...)) {
			s["docker "+kind+" "+id] = run(t, "docker", kind, "inspect", id)
		}
	}
	images := strings.Split(run(t, "docker", "image", "ls", "--all", "--no-trunc", "--format",
		"{{.ID}} {{.Repository}}:{{.Tag}}"), "\n")
	slices.Sort(images)
	s["docker images"] = strings.Join(images, "\n")
}

// addTree adds all files and folders below a root, which may be a file or not exist.
func (s upState) addTree(t *testing.T, name, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, path)
		if err == nil {
			s[filepath.ToSlash(filepath.Join(name, inside))], err = stateOf(path, entry)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// stateOf returns the mode of a file and its content, or the hash of a content that is too long to
// print.
func stateOf(path string, entry fs.DirEntry) (string, error) {
	info, err := entry.Info()
	if err != nil {
		return "", err
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return mode.String() + " " + target, err
	case !mode.IsRegular():
		return mode.String(), nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if len(content) > 4096 || !utf8.Valid(content) {
		return fmt.Sprintf("%s %d bytes %x", info.Mode(), len(content), sha256.Sum256(content)), nil
	}
	return info.Mode().String() + " " + string(content), nil
}

// expectAsBefore compares the states before up and after down, except for the folders of the node that down
// says it keeps, and for the caches and locks that the guide names.
func expectAsBefore(t *testing.T, before, after upState, kept []string) {
	t.Helper()
	folders := []string{
		"cache/blobs", "cache/up-times.json",
		"node/ProgramData/swdt",                 // swdt's own folder, which a reset leaves too
		"node/ProgramData/swdt-hns", "node/lab", // the test changes them itself
	}
	for _, text := range kept {
		folder, _, _ := strings.Cut(text, " on ")
		folders = append(folders, "node/"+strings.ReplaceAll(strings.TrimPrefix(folder, `C:\`), `\`, "/"))
	}
	for _, change := range before.changed(after) {
		name := change[2:]
		related := func(folder string) bool { // in a folder that stays, or around one
			return name == folder || strings.HasPrefix(name, folder+"/") || strings.HasPrefix(folder, name+"/")
		}
		if !slices.ContainsFunc(folders, related) && !slices.Contains(upRecords, change) {
			t.Errorf("%s: was %.200q, is %.200q", change, before[name], after[name])
		}
	}
}

// upRecords are the folders of swdt's records, and the files in them that say which swdt works on a
// cluster. They stay, without records.
var upRecords = []string{
	"+ home/.local", "+ home/.local/share", "+ home/.local/share/swdt", "+ home/.local/share/swdt/machines",
	"+ home/.local/share/swdt/clusters", "+ home/.local/share/swdt/clusters/dev.lock",
	"+ home/.local/share/swdt/up", "+ home/.local/share/swdt/up/dev.lock",
}

// changed returns the names whose state differs, each with + for a new one, - for a missing one, and ~ for
// another content.
func (s upState) changed(after upState) (all []string) {
	for name, was := range s {
		now, there := after[name]
		switch {
		case !there:
			all = append(all, "- "+name)
		case now != was:
			all = append(all, "~ "+name)
		}
	}
	for name := range after {
		if _, there := s[name]; !there {
			all = append(all, "+ "+name)
		}
	}
	slices.Sort(all)
	return all
}
