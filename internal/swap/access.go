package swap

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/access"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// ownStaged makes sure that no ordinary account can change the staged file any
// more: neither by its access list nor through a handle from before. A file that
// such an account made or may change is copied into one that is new.
func ownStaged(files host.Files, c Component, id string) error {
	if !files.KeepsACL() {
		return nil
	}
	info, err := files.Stat(c.Staged)
	if err != nil {
		return fmt.Errorf("look at the staged file: %w", err)
	}
	by := changers(files.ACL(c.Staged))
	switch {
	case len(by) == 0 && !info.Link:
		return nil
	case c.revives():
		return fmt.Errorf("the account %s can change the previous binary %s, so it may not be the one that swdt kept: "+
			"push the version that you want", strings.Join(by, ", "), c.Staged)
	}
	own := layout.Aside(c.Destination, id+"-own")
	if err := copyNew(files, c.Staged, own); err != nil {
		return fmt.Errorf("make a staged file that no other account can change: %w", errors.Join(err, files.Remove(own)))
	}
	err = setAside(files, c.Staged, layout.Aside(c.Destination, id+"-planted"))
	if err == nil {
		err = files.Rename(own, c.Staged, false)
	}
	if err != nil {
		return fmt.Errorf("replace the staged file, which %s can change: %w", strings.Join(by, ", "), errors.Join(err, files.Remove(own)))
	}
	return nil
}

func copyNew(files host.Files, from, to string) error {
	old, err := files.Open(from)
	if err != nil {
		return err
	}
	defer old.Close()
	file, err := files.NewFile(to, access.SafeFile)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, old)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// changers are the ordinary accounts that can change a file with this access list.
func changers(sddl string, err error) []string {
	if err != nil {
		return []string{"WD"}
	}
	return access.OrdinaryChangers(sddl)
}

// dress gives the new binary the access list of the old one, or the safe one if
// ordinary accounts could change the old one. A failure leaves it restricted, with
// which a service runs it too.
func (t *transaction) dress(c Component) {
	files := t.Host.Files
	if !files.KeepsACL() {
		return
	}
	sddl := layout.BinarySDDL
	if !c.creates() {
		if old, err := files.ACL(c.Destination); len(changers(old, err)) == 0 {
			sddl = old
		}
	}
	_ = files.SetACL(c.Staged, sddl)
}
