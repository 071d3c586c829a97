// Package custody keeps what swdt has on a node, everything below layout.Root, in
// the hands of SYSTEM and the administrators. It stands between the agent and its
// files: whatever is read below the root is judged first, from the root down to the
// file itself, and whatever is created there is restricted from its first moment on.
//
// Every user may create folders in C:\ProgramData, and who made a folder stays its
// master: the owner can always change the access list, and a handle that was opened
// before a list was tightened keeps its rights. So a root that another account made
// is never repaired. It is moved aside, unread, and a new one takes its place. The
// owner SYSTEM marks a root that was made here: no ordinary user can give it.
//
// Once the root is ours, nobody else can put anything into it, nor another folder in
// its place: what was judged stays so, and each use judges it again.
package custody

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/access"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// ForeignError: what has one of our names could be another account's, and is not used.
type ForeignError struct {
	Path   string
	Reason string
	Err    error // why it could not be moved aside, if that was tried
}

func (e *ForeignError) Error() string {
	text := fmt.Sprintf("refuse to use %s: %s", e.Path, e.Reason)
	if e.Err != nil {
		return text + fmt.Sprintf("; move it aside: %v; end the processes that have something open in it, or remove it as an administrator", e.Err)
	}
	return text + "; look at what it is, and remove it as an administrator"
}

func (e *ForeignError) Unwrap() error { return e.Err }

// asideMark is in the names of roots that were moved aside.
const asideMark = "-foreign-"

// Host returns h with files that are in custody.
func Host(h *host.Host) *host.Host {
	if _, done := h.Files.(files); done {
		return h
	}
	kept := *h
	kept.Files = Files(h.Files)
	return &kept
}

// Files returns all, with what is below layout.Root in custody.
func Files(all host.Files) host.Files {
	if kept, done := all.(files); done {
		return kept
	}
	return files{all}
}

// rootTries bounds how often the root is made anew while another account makes one, too.
const rootTries = 10

// Secure makes sure that layout.Root is there and ours. It returns where a root that
// was not ours has been moved to; empty: nothing was. A root that is ours is only
// looked at.
func Secure(all host.Files) (movedTo string, err error) {
	for range rootTries {
		err := judge(all, layout.Root)
		var foreign *ForeignError
		switch {
		case err == nil:
			return movedTo, nil
		case errors.Is(err, host.ErrNotExist):
			if err = makeRoot(all); err == nil || !errors.Is(err, host.ErrExist) {
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
	return movedTo, &ForeignError{Path: layout.Root, Reason: fmt.Sprintf("another account made it anew, %d times", rootTries)}
}

func makeRoot(all host.Files) error {
	if err := all.NewFolder(layout.Root, access.SafeFolder); err != nil {
		return fmt.Errorf("make %s, for administrators only: %w", layout.Root, err)
	}
	return judge(all, layout.Root)
}

// moveAside renames a root that is not ours. Another swdt may have put a good one in
// its place meanwhile: that goes back.
func moveAside(all host.Files, foreign *ForeignError) (aside string, err error) {
	aside = layout.Root + asideMark + strings.ToLower(rand.Text()[:12])
	err = all.Rename(layout.Root, aside, false)
	if errors.Is(err, host.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", &ForeignError{Path: layout.Root, Reason: foreign.Reason, Err: err}
	}
	if judgeAs(all, aside, true) != nil {
		return aside, nil
	}
	if err := all.Rename(aside, layout.Root, false); err != nil && !errors.Is(err, host.ErrExist) {
		return "", fmt.Errorf("put %s back: %w", layout.Root, err)
	}
	return "", nil
}

// judge is nil if what has a path is ours, or a *ForeignError. Folders above it are
// not looked at.
func judge(all host.Files, path string) error {
	return judgeAs(all, path, strings.EqualFold(path, layout.Root))
}

func judgeAs(all host.Files, path string, root bool) error {
	info, err := all.Stat(path)
	if err != nil {
		return err
	}
	switch {
	case info.Link:
		return &ForeignError{Path: path, Reason: "it is a link, which may lead anywhere"}
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
		return &ForeignError{Path: path, Reason: "accounts other than SYSTEM and Administrators have access to it: " + sddl}
	}
	return nil
}

// below returns the folders from the root down to path, itself included; nil for a
// path that is not the root's or below it.
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

// withoutParents resolves the .. of a path.
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
