package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// protectRoot gives layout.Root the access list of layout.RootSDDL where it has
// another one. A missing folder is created if create is set, and else left
// missing: a session that changes nothing on a node writes nothing there.
func protectRoot(files host.Files, create bool) error {
	_, err := files.Stat(layout.Root)
	if errors.Is(err, host.ErrNotExist) {
		if !create {
			return nil
		}
		err = files.MakeFolder(layout.Root)
	}
	if err != nil {
		return fmt.Errorf("prepare %s: %w", layout.Root, err)
	}
	is, err := files.ACL(layout.Root)
	if err != nil {
		return fmt.Errorf("read who may write to %s: %w", layout.Root, err)
	}
	if sameAccess(is, layout.RootSDDL) {
		return nil
	}
	if err := files.SetACL(layout.Root, layout.RootSDDL); err != nil {
		return fmt.Errorf("protect %s: %w", layout.Root, err)
	}
	return nil
}

// sameAccess compares owner, protection and entries. What else Windows reports
// (group, auto-inheritance flags, the order of allow entries) makes no difference.
func sameAccess(a, b string) bool {
	x, y := parseSDDL(a), parseSDDL(b)
	return x.owner == y.owner && x.protected == y.protected && slices.Equal(x.entries, y.entries)
}

type access struct {
	owner     string
	protected bool
	entries   []string // sorted
}

func parseSDDL(sddl string) access {
	var a access
	sddl, _, _ = strings.Cut(sddl, "S:(") // no auditing
	head, list, _ := strings.Cut(sddl, "D:")
	_, owner, _ := strings.Cut(head, "O:")
	a.owner, _, _ = strings.Cut(owner, "G:")
	flags, entries, found := strings.Cut(list, "(")
	a.protected = strings.Contains(flags, "P")
	if found {
		a.entries = strings.Split(strings.TrimSuffix(entries, ")"), ")(")
		slices.Sort(a.entries)
	}
	return a
}
