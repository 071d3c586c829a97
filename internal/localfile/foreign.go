package localfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ForeignError reports that another account can change a file. Another account is neither you, nor root, nor the
// account that called sudo; on Windows, neither you, nor SYSTEM, nor one of the administrators.
type ForeignError struct {
	File string // what was checked
	Path string // the file itself, a folder above it, or a link on the way to it
	Why  string // such as "belongs to user 1001"
}

func (e *ForeignError) Error() string {
	if e.Path == e.File {
		return fmt.Sprintf("%s %s, so another account can change it", e.File, e.Why)
	}
	return fmt.Sprintf("%s %s, so another account can change %s", e.Path, e.Why, e.File)
}

// mostLinks is how many symbolic links a path may have, as in Linux.
const mostLinks = 40

// CheckForeign returns a *ForeignError if another account can change a file, or replace it: the file, a folder above
// it, or a link on the way. In a folder such as /tmp, where each account may make files, an account can only replace
// its own.
func CheckForeign(path string) error {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	trusted, err := trustedAccounts()
	if err != nil {
		return err
	}
	c := check{file: absolute, trusted: trusted, at: top(absolute), rest: names(absolute)}
	info, err := os.Lstat(c.at)
	if err != nil {
		return err
	}
	for err = c.judge(c.at, info); err == nil && len(c.rest) > 0; {
		err = c.next()
	}
	return err
}

// check follows a path from the root, link by link.
type check struct {
	file    string
	trusted accounts
	at      string   // a folder on the way, whose path has no links; at last the file
	rest    []string // the names that follow
	links   int
}

// next goes on to the next name, and checks what it names.
func (c *check) next() error {
	folder, err := os.Lstat(c.at)
	if err != nil {
		return err
	}
	name := c.rest[0]
	c.rest = c.rest[1:]
	if name == ".." {
		c.at = filepath.Dir(c.at) // which was checked on the way down
		return nil
	}
	path := filepath.Join(c.at, name)
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	target, isLink, err := linkTarget(path, info)
	if err != nil {
		return err
	}
	if !isLink {
		c.at = path
		return c.judge(path, info)
	}
	why, err := c.trusted.changeLink(path, info, folder)
	if err := c.verdict(path, why, err); err != nil {
		return err
	}
	return c.follow(target)
}

// linkTarget returns where a link leads. A junction of Windows is a link.
func linkTarget(path string, info fs.FileInfo) (target string, isLink bool, err error) {
	if info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) == 0 {
		return "", false, nil
	}
	target, err = os.Readlink(path)
	if err != nil && info.Mode()&fs.ModeSymlink == 0 {
		return "", false, nil // another thing that Windows calls a reparse point, such as a file in the cloud
	}
	return target, true, err
}

// follow goes on to where a link leads.
func (c *check) follow(target string) error {
	if c.links++; c.links > mostLinks {
		return &fs.PathError{Op: "open", Path: c.file, Err: fmt.Errorf("it has more than %d links", mostLinks)}
	}
	switch {
	case filepath.IsAbs(target):
		c.at = top(target)
	case target != "" && os.IsPathSeparator(target[0]): // on Windows, in the root of the same drive
		c.at = top(c.at)
	}
	c.rest = append(names(target), c.rest...)
	return nil
}

func (c *check) judge(path string, info fs.FileInfo) error {
	why, err := c.trusted.change(path, info)
	return c.verdict(path, why, err)
}

func (c *check) verdict(path, why string, err error) error {
	if why != "" {
		return &ForeignError{c.file, path, why}
	}
	return err
}

// top returns the root of a path's drive.
func top(path string) string { return filepath.VolumeName(path) + string(filepath.Separator) }

// names returns the names in a path.
func names(path string) []string {
	path = path[len(filepath.VolumeName(path)):]
	all := strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator || r == '/' })
	return slices.DeleteFunc(all, func(name string) bool { return name == "." })
}
