package agent_test

import (
	"slices"
	"strings"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// treeWithLinks is C:\tree with a file, a folder and a junction to C:\precious.
type treeWithLinks struct {
	noFiles
	removed []string
}

func (f *treeWithLinks) Stat(path string) (platform.FileInfo, error) {
	for _, parent := range []string{`C:\`, `C:\tree`, `C:\tree\sub`, `C:\precious`} {
		entries, _ := f.List(parent)
		for _, entry := range entries {
			if entry.Path == path {
				return entry, nil
			}
		}
	}
	return platform.FileInfo{}, fault.ErrNotExist
}

func (f *treeWithLinks) List(path string) ([]platform.FileInfo, error) {
	switch path {
	case `C:\`:
		return []platform.FileInfo{{Path: `C:\precious`, Folder: true}, {Path: `C:\tree`, Folder: true}}, nil
	case `C:\tree`:
		return []platform.FileInfo{
			{Path: `C:\tree\file`}, {Path: `C:\tree\junction`, Folder: true, Link: true},
			{Path: `C:\tree\sub`, Folder: true},
		}, nil
	case `C:\tree\sub`:
		return []platform.FileInfo{{Path: `C:\tree\sub\symlink`, Link: true}}, nil
	case `C:\precious`, `C:\tree\junction`:
		return []platform.FileInfo{{Path: path + `\data`}}, nil
	}
	return nil, fault.ErrNotExist
}

func (f *treeWithLinks) Remove(path string) error {
	f.removed = append(f.removed, path)
	return nil
}

func TestRemoveNeverFollowsLinks(t *testing.T) {
	for path, want := range map[string][]string{
		`C:\tree`:          {`C:\tree\file`, `C:\tree\junction`, `C:\tree\sub\symlink`, `C:\tree\sub`, `C:\tree`},
		`C:\tree\junction`: {`C:\tree\junction`},
	} {
		files := &treeWithLinks{}
		c := connect(t, &platform.Platform{Files: files})
		if _, err := c.files.Remove(t.Context(), &agentv1.RemoveRequest{Path: path, Recursive: true}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(files.removed, want) {
			t.Errorf("removed\n%s", strings.Join(files.removed, "\n"))
		}
	}
}
