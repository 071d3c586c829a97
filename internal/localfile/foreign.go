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
// account that called sudo.
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
// its own. On Windows, where swdt knows no owners, CheckForeign accepts each file.
func CheckForeign(path string) error {
	absolute, err := filepath.Abs(path)
	if err != nil || !ModesMatter {
		return err
	}
	c := check{file: absolute, trusted: trustedAccounts(), at: string(filepath.Separator), rest: names(absolute)}
	info, err := os.Lstat(c.at)
	if err != nil {
		return err
	}
	for err = c.changes(info); err == nil && len(c.rest) > 0; {
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
	isLink := info.Mode()&fs.ModeSymlink != 0
	// The owner of a link cannot change it, but can replace it in a shared folder.
	if why := c.trusted.owns(info); why != "" && (!isLink || isShared(folder)) {
		return &ForeignError{c.file, path, why}
	}
	if isLink {
		return c.follow(path)
	}
	c.at = path
	return c.changes(info)
}

// follow goes on to where a link leads.
func (c *check) follow(link string) error {
	if c.links++; c.links > mostLinks {
		return &fs.PathError{Op: "open", Path: c.file, Err: fmt.Errorf("it has more than %d links", mostLinks)}
	}
	target, err := os.Readlink(link)
	if err != nil {
		return err
	}
	if filepath.IsAbs(target) {
		c.at = string(filepath.Separator)
	}
	c.rest = append(names(target), c.rest...)
	return nil
}

func (c *check) changes(info fs.FileInfo) error {
	if why := c.trusted.changes(info); why != "" {
		return &ForeignError{c.file, c.at, why}
	}
	return nil
}

// names returns the names in a path.
func names(path string) []string {
	all := strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
	return slices.DeleteFunc(all, func(name string) bool { return name == "." })
}

// isShared reports whether each account may make files in a folder, and remove only its own.
func isShared(info fs.FileInfo) bool {
	return info.IsDir() && info.Mode()&fs.ModeSticky != 0 && info.Mode()&0o022 != 0
}
