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

func trustedAccounts() accounts {
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
	return a
}

// owns returns why another account can change a file: it belongs to that account. "": it does not.
func (a accounts) owns(info fs.FileInfo) string {
	owner, _ := Owner(info)
	if slices.Contains(a.users, owner) {
		return ""
	}
	return fmt.Sprintf("belongs to user %d", owner)
}

// changes returns why the mode of a file lets another account change it, or what is in a folder; "": it does not.
func (a accounts) changes(info fs.FileInfo) string {
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
