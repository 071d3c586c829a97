package localfile

import (
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/access"
)

// foreignACL returns why a Windows access list lets another account change a file, or replace what is in a folder;
// "": it does not. sddl has the owner and the list, and you is the account in whose name swdt runs, as SDDL spells
// it. name returns the name of an account.
func foreignACL(sddl, you string, isFolder bool, name func(account string) string) (why string, err error) {
	list, err := access.Parse(sddl)
	if err != nil {
		return "", err
	}
	others := list.Changers()
	if isFolder {
		others = list.Replacers()
	}
	others = slices.DeleteFunc(others, func(account string) bool {
		return account == you || access.IsBuiltInAdministrator(account) || standsForAnother(account)
	})
	switch {
	case len(others) == 0:
		return "", nil
	case others[0] == list.Owner:
		return "belongs to " + name(list.Owner), nil
	}
	return "can be changed by " + name(others[0]), nil
}

// standsForAnother reports whether an entry for an account gives no rights to a further account: CREATOR OWNER and
// OWNER RIGHTS stand for the owner, and a package of apps needs the rights of its user as well.
func standsForAnother(account string) bool {
	return account == "CO" || account == "OW" || account == "S-1-3-4" || account == "AC" || strings.HasPrefix(account, "S-1-15-")
}
