package localfile

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/format/access"
)

// accounts are the accounts that may do in your name what they want: you, SYSTEM and the administrators.
type accounts struct {
	you string // as SDDL spells your account
}

func trustedAccounts() (accounts, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return accounts{}, fmt.Errorf("find your account: %w", err)
	}
	// Windows abbreviates some accounts, in an access list as here.
	descriptor, err := windows.SecurityDescriptorFromString("O:" + user.User.Sid.String())
	if err != nil {
		return accounts{}, fmt.Errorf("spell your account: %w", err)
	}
	list, err := access.Parse(descriptor.String())
	return accounts{list.Owner}, err
}

// change returns why another account can change a file, or replace what is in a folder: it belongs to that account, or
// its access list lets that account do so. "": no other account can.
func (a accounts) change(path string, info fs.FileInfo) (why string, err error) {
	sddl, err := accessList(path)
	if err != nil {
		return "", err
	}
	return foreignACL(sddl, a.you, info.IsDir(), accountName)
}

// changeLink returns why another account can change where a link leads: as for a file.
func (a accounts) changeLink(path string, link, _ fs.FileInfo) (why string, err error) {
	sddl, err := accessList(path)
	if err != nil {
		return "", err
	}
	return foreignACL(sddl, a.you, false, accountName)
}

// accessList returns the owner and the access list of a path itself, not of the target of a link.
func accessList(path string) (string, error) {
	failed := func(err error) error {
		return &fs.PathError{Op: "read the access list of", Path: path, Err: err}
	}
	path16, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return "", failed(err)
	}
	handle, err := windows.CreateFile(path16, windows.READ_CONTROL,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return "", failed(err)
	}
	defer windows.CloseHandle(handle)
	descriptor, err := windows.GetSecurityInfo(handle, windows.SE_FILE_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return "", failed(err)
	}
	return descriptor.String(), nil
}

// accountName returns the name of an account that SDDL spells; if Windows has no name for it, that spelling.
func accountName(spelling string) string {
	descriptor, err := windows.SecurityDescriptorFromString("O:" + spelling)
	if err != nil {
		return spelling
	}
	sid, _, err := descriptor.Owner()
	if err != nil {
		return spelling
	}
	name, domain, _, err := sid.LookupAccount("")
	switch {
	case err != nil:
		return spelling
	case domain == "":
		return name
	}
	return domain + `\` + name
}
