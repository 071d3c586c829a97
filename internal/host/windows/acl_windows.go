package windows

import (
	"fmt"

	"golang.org/x/sys/windows"
)

func (files) ACL(path string) (string, error) {
	path, err := clean(path)
	if err != nil {
		return "", err
	}
	descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return "", failed(err, "read the access list of %s", path)
	}
	return descriptor.String(), nil
}

func (files) SetACL(path, sddl string) error {
	path, err := clean(path)
	if err != nil {
		return err
	}
	descriptor, err := windows.SecurityDescriptorFromString(sddl)
	if err != nil {
		return failed(err, "read the access list %q", sddl)
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return failed(err, "read the owner in %q", sddl)
	}
	parts, access, err := accessParts(descriptor)
	if err != nil {
		return failed(err, "read the access list %q", sddl)
	}
	if owner != nil {
		parts |= windows.OWNER_SECURITY_INFORMATION
		// To give a file to somebody else takes this privilege, which elevated
		// administrators have switched off. Where it is missing, the call says so.
		_ = enablePrivilege("SeRestorePrivilege")
	}
	if parts == 0 {
		return fmt.Errorf("set the access list of %s: %q names neither owner nor list", path, sddl)
	}
	return failed(windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, parts, owner, nil, access, nil),
		"set the access list of %s", path)
}

func accessParts(descriptor *windows.SECURITY_DESCRIPTOR) (windows.SECURITY_INFORMATION, *windows.ACL, error) {
	control, _, err := descriptor.Control()
	if err != nil || control&windows.SE_DACL_PRESENT == 0 {
		return 0, nil, err
	}
	access, _, err := descriptor.DACL()
	if err != nil {
		return 0, nil, err
	}
	parts := windows.SECURITY_INFORMATION(windows.DACL_SECURITY_INFORMATION)
	if control&windows.SE_DACL_PROTECTED != 0 {
		return parts | windows.PROTECTED_DACL_SECURITY_INFORMATION, access, nil
	}
	return parts | windows.UNPROTECTED_DACL_SECURITY_INFORMATION, access, nil
}

// enablePrivilege switches on a privilege that this process's user has.
func enablePrivilege(name string) error {
	name16, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	var token windows.Token
	err = windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES|windows.TOKEN_QUERY, &token)
	if err != nil {
		return failed(err, "open this process's token")
	}
	defer token.Close()
	state := windows.Tokenprivileges{PrivilegeCount: 1}
	state.Privileges[0].Attributes = windows.SE_PRIVILEGE_ENABLED
	if err := windows.LookupPrivilegeValue(nil, name16, &state.Privileges[0].Luid); err != nil {
		return failed(err, "look up %s", name)
	}
	return failed(windows.AdjustTokenPrivileges(token, false, &state, 0, nil, nil), "enable %s", name)
}
