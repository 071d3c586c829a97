package swap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// ownStaged makes sure that no ordinary account can change the staged file any more, neither
// through its access list nor through a handle that was opened earlier. If such an account made the
// file or may change it, ownStaged copies the contents into a new file. If the staged file is the
// kept previous binary, it returns an error instead.
func ownStaged(ctx context.Context, files platform.Files, c Component, id string) error {
	if !files.KeepsACL() {
		return nil
	}
	info, err := files.Stat(c.Staged)
	if err != nil {
		return fmt.Errorf("read the state of the staged file: %w", err)
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
		return fmt.Errorf("make a staged file that no other account can change: %w",
			errors.Join(err, files.Remove(own)))
	}
	patient := patience.Patience{Files: files, Limit: patience.Long}
	err = setAsidePatiently(ctx, patient, c.Staged, layout.Aside(c.Destination, id+"-planted"))
	if err == nil {
		err = patient.Rename(ctx, own, c.Staged, false)
	}
	if err != nil {
		return fmt.Errorf("replace the staged file, which %s can change: %w", strings.Join(by, ", "),
			errors.Join(err, files.Remove(own)))
	}
	return nil
}

func copyNew(files platform.Files, from, to string) error {
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

// changers returns the ordinary accounts that can change a file with this access list. If err is
// set, the list is unknown, and changers returns WD, which stands for all accounts.
func changers(sddl string, err error) []string {
	if err != nil {
		return []string{"WD"}
	}
	return access.OrdinaryChangers(sddl)
}

// setAccess gives the new binary the access list of the old one, or the safe list layout.BinarySDDL
// if there is no old binary or if ordinary accounts could change the old binary. If the list cannot
// be set, the new binary stays restricted, and a service can run it nevertheless.
func (t *transaction) setAccess(c Component) {
	files := t.Platform.Files
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
