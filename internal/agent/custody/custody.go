// Package custody keeps swdt's files on a node (everything below layout.Root) under the sole
// control of SYSTEM and the administrators. It is a layer between the agent and its files. Before
// custody uses a file below the root, it judges the root, each folder on the way, and the file
// itself: it refuses them if another account could have made or changed them. It restricts each
// file and folder that it creates, from the creation on.
//
// Every user may create folders in C:\ProgramData, and the creator of a folder keeps control of it: an owner can
// always change the access list, and a handle that was opened before a list was tightened keeps its rights. So a root
// made by another account is never repaired. It is moved aside, unread, and a new one replaces it. The owner SYSTEM
// marks a root that swdt made: no ordinary user can assign that owner.
//
// Once the root is swdt's, no other account can put anything into it, nor replace it by another folder. So a
// judgement stays valid; custody nevertheless judges again before each use.
package custody

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// ForeignError reports that custody does not use a file or folder with one of swdt's names, since it could belong to
// another account.
type ForeignError struct {
	Path   string
	Reason string
	Err    error  // why moving the root aside failed; nil if no move failed
	Remedy string // empty: to remove it
}

func (e *ForeignError) Error() string {
	text := fmt.Sprintf("refuse to use %s: %s", e.Path, e.Reason)
	if e.Err != nil {
		return text + fmt.Sprintf("; move it aside: %v; end the processes that have something open in it, or remove "+
			"it as an administrator", e.Err)
	}
	return text + "; " + cmp.Or(e.Remedy, "check what it is, and remove it as an administrator")
}

func (e *ForeignError) Unwrap() error { return e.Err }

// asideMark is part of the names of roots that were moved aside.
const asideMark = "-foreign-"

// Platform returns a copy of p whose files are wrapped by Files.
func Platform(p *platform.Platform) *platform.Platform {
	if _, done := p.Files.(files); done {
		return p
	}
	kept := *p
	kept.Files = Files(p.Files)
	return &kept
}

// Files wraps the machine's files. Below layout.Root it refuses files and folders that another
// account could have made or changed, and restricts those that swdt makes.
func Files(all platform.Files) platform.Files {
	if kept, done := all.(files); done {
		return kept
	}
	return files{all}
}

// rootTries limits how often Secure tries again because another account made the root at the same time.
const rootTries = 10

// Secure makes sure that layout.Root exists and is swdt's. It returns the path to which it moved a
// foreign root, or "" if it moved none. It does not change a root that is swdt's.
func Secure(all platform.Files) (movedTo string, err error) {
	for range rootTries {
		if err := secureParent(all); err != nil {
			return movedTo, err
		}
		err := checkOwner(all, layout.Root)
		var foreign *ForeignError
		switch {
		case err == nil:
			return movedTo, nil
		case errors.Is(err, fault.ErrNotExist):
			if err = makeRoot(all); err == nil || !errors.Is(err, fault.ErrExist) {
				return movedTo, err
			}
		case errors.As(err, &foreign):
			aside, err := moveAside(all, foreign)
			if err != nil {
				return movedTo, err
			}
			if aside != "" {
				movedTo = aside
			}
		default:
			return movedTo, err
		}
	}
	return movedTo, &ForeignError{Path: layout.Root,
		Reason: fmt.Sprintf("another account created it again %d times", rootTries)}
}

// secureParent makes sure that no ordinary account can replace what is in the folder of the root. A Windows that keeps
// its program data elsewhere ("FolderLocations" of answer files) has no such folder, and every user could make it:
// secureParent makes it for administrators only.
func secureParent(all platform.Files) error {
	parent := layout.Root[:strings.LastIndex(layout.Root, `\`)]
	_, err := all.Stat(parent)
	if errors.Is(err, fault.ErrNotExist) {
		if err = all.NewFolder(parent, access.SafeFolder); errors.Is(err, fault.ErrExist) {
			err = nil // another account made it; it is judged like any other
		}
	}
	if err != nil {
		return fmt.Errorf("make %s, for administrators only: %w", parent, err)
	}
	if !all.KeepsACL() {
		return nil
	}
	sddl, err := all.ACL(parent)
	if err != nil {
		return fmt.Errorf("read who can change %s: %w", parent, err)
	}
	foreign := &ForeignError{Path: parent, Remedy: "let Administrators own it, and let no other account replace what is " +
		"in it: see `icacls " + parent + "`"}
	list, err := access.Parse(sddl)
	if err != nil {
		foreign.Reason = "its access list is of a kind that swdt does not know: " + sddl
		return foreign
	}
	others := slices.DeleteFunc(list.Replacers(), access.IsBuiltInAdministrator)
	if len(others) > 0 {
		foreign.Reason = "the account " + strings.Join(others, ", ") + " can replace swdt's folder in it"
		return foreign
	}
	return nil
}

func makeRoot(all platform.Files) error {
	if err := all.NewFolder(layout.Root, access.SafeFolder); err != nil {
		return fmt.Errorf("make %s, for administrators only: %w", layout.Root, err)
	}
	return checkOwner(all, layout.Root)
}

// moveAside renames a root that is not swdt's, and returns its new path. Before the rename, another
// swdt may have moved that root aside. If no root exists now, moveAside returns "". If moveAside
// has renamed a good new root, it renames this root back and returns "".
func moveAside(all platform.Files, foreign *ForeignError) (aside string, err error) {
	aside = layout.Root + asideMark + strings.ToLower(rand.Text()[:12])
	err = all.Rename(layout.Root, aside, false)
	if errors.Is(err, fault.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", &ForeignError{Path: layout.Root, Reason: foreign.Reason, Err: err}
	}
	if judgeAs(all, aside, true) != nil {
		return aside, nil
	}
	if err := all.Rename(aside, layout.Root, false); err != nil && !errors.Is(err, fault.ErrExist) {
		return "", fmt.Errorf("rename %s back: %w", layout.Root, err)
	}
	return "", nil
}

// checkOwner returns nil if the file or folder at path is swdt's, and a *ForeignError if it is not. It does not check
// the folders above path.
func checkOwner(all platform.Files, path string) error {
	return judgeAs(all, path, strings.EqualFold(path, layout.Root))
}

func judgeAs(all platform.Files, path string, root bool) error {
	info, err := all.Stat(path)
	if err != nil {
		return err
	}
	switch {
	case info.Link:
		return &ForeignError{Path: path, Reason: "it is a link, which may point anywhere"}
	case root && !info.Folder:
		return &ForeignError{Path: path, Reason: "it is a file, not a folder"}
	case !all.KeepsACL():
		return nil
	}
	sddl, err := all.ACL(path)
	if err != nil {
		return err
	}
	list, err := access.Parse(sddl)
	switch {
	case err != nil:
		return &ForeignError{Path: path, Reason: "its access list is of a kind that swdt never makes: " + sddl}
	case root && (list.Owner != access.System || !list.Protected):
		return &ForeignError{Path: path, Reason: "swdt has not made it: its owner is " + list.Owner}
	case !list.Exclusive():
		return &ForeignError{Path: path, Reason: "accounts other than SYSTEM and Administrators have access to it: " +
			sddl}
	}
	return nil
}

// below returns the root, the folders between the root and path, and path itself, in this order. It returns nil if
// path is neither the root nor below the root.
func below(path string) []string {
	rest := strings.TrimPrefix(strings.ReplaceAll(path, "/", `\`), `\\?\`)
	var parts []string
	for _, part := range strings.Split(rest, `\`) {
		switch part = strings.TrimRight(part, ". "); {
		case part != "":
			parts = append(parts, part)
		case strings.HasSuffix(rest, `\..`) || strings.Contains(rest, `\..\`):
			return below(withoutParents(rest))
		}
	}
	above := strings.Count(layout.Root, `\`) + 1
	if len(parts) < above || !strings.EqualFold(strings.Join(parts[:above], `\`), layout.Root) {
		return nil
	}
	chain := []string{layout.Root}
	for _, part := range parts[above:] {
		chain = append(chain, chain[len(chain)-1]+`\`+part)
	}
	return chain
}

// withoutParents resolves each ".." in a path.
func withoutParents(path string) string {
	var parts []string
	for _, part := range strings.Split(path, `\`) {
		switch {
		case part == ".." && len(parts) > 1:
			parts = parts[:len(parts)-1]
		case part != "..":
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, `\`)
}
