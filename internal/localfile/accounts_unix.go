//go:build unix

package localfile

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
)

// accounts are the accounts that may do in your name what they want: you, root, and the account that called sudo.
type accounts struct {
	users  []int
	groups []int // root's, and those with the names of these accounts
}

func trustedAccounts() (accounts, error) {
	a := accounts{users: []int{0, os.Geteuid()}, groups: []int{0}}
	if caller, err := strconv.Atoi(os.Getenv("SUDO_UID")); err == nil && os.Geteuid() == 0 {
		a.users = append(a.users, caller)
	}
	for _, id := range a.users[1:] {
		// Many systems give each user a group of the same name, and let the group change the user's files.
		if account, err := user.LookupId(strconv.Itoa(id)); err == nil {
			if group, err := user.LookupGroupId(account.Gid); err == nil && group.Name == account.Username {
				gid, _ := strconv.Atoi(account.Gid) // a number, as on all systems with modes
				a.groups = append(a.groups, gid)
			}
		}
	}
	return a, nil
}

// change returns why another account can change a file, or what is in a folder: it belongs to that account, or its mode
// lets that account write. "": no other account can.
func (a accounts) change(_ string, info fs.FileInfo) (why string, err error) {
	if why := a.owner(info); why != "" {
		return why, nil
	}
	return a.writer(info), nil
}

// changeLink returns why another account can change where a link in a folder leads. The owner of a link cannot change
// it, but can replace it in a shared folder.
func (a accounts) changeLink(_ string, link, folder fs.FileInfo) (why string, err error) {
	if isShared(folder) {
		return a.owner(link), nil
	}
	return "", nil
}

// owner returns that a file belongs to another account; "": it does not.
func (a accounts) owner(info fs.FileInfo) string {
	owner, _ := Owner(info)
	if slices.Contains(a.users, owner) {
		return ""
	}
	return fmt.Sprintf("belongs to user %d", owner)
}

// writer returns why the mode of a file lets another account change it, or what is in a folder; "": it does not.
func (a accounts) writer(info fs.FileInfo) string {
	mode := info.Mode()
	switch group, _ := Group(info); {
	case isShared(info):
		return ""
	case mode&0o002 != 0:
		return fmt.Sprintf("has mode %04o", mode.Perm())
	case mode&0o020 != 0 && !slices.Contains(a.groups, group):
		return fmt.Sprintf("has mode %04o and group %d", mode.Perm(), group)
	}
	return ""
}

// isShared reports whether each account may make files in a folder, and remove only its own.
func isShared(info fs.FileInfo) bool {
	return info.IsDir() && info.Mode()&fs.ModeSticky != 0 && info.Mode()&0o022 != 0
}
