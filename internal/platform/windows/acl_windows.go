package windows

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
)

// ACL and SetACL open the path itself, never the target of a link, and act on that handle. They
// enable the privileges that let an administrator open the path even if the access list excludes
// administrators. If a privilege is needed but cannot be enabled, opening the path fails, and ACL
// or SetACL returns this error.
func (files) ACL(path string) (string, error) {
	path, err := clean(path)
	if err != nil {
		return "", err
	}
	_ = enablePrivilege("SeBackupPrivilege")
	handle, err := open(path, windows.READ_CONTROL, shareAll, windows.OPEN_EXISTING, itself)
	if err != nil {
		return "", failed(err, "read the access list of %s", path)
	}
	defer windows.CloseHandle(handle)
	return aclOf(handle, path)
}

func aclOf(handle windows.Handle, path string) (string, error) {
	descriptor, err := windows.GetSecurityInfo(handle, windows.SE_FILE_OBJECT,
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
	descriptor, owner, err := parseSDDL(sddl)
	if err != nil {
		return err
	}
	parts, access, err := accessParts(descriptor)
	if err != nil {
		return failed(err, "parse the access list %q", sddl)
	}
	rights := uint32(windows.READ_CONTROL)
	if parts != 0 {
		rights |= windows.WRITE_DAC
	}
	if owner != nil {
		parts |= windows.OWNER_SECURITY_INFORMATION
		rights |= windows.WRITE_OWNER
	}
	if parts == 0 {
		return fmt.Errorf("set the access list of %s: %q names neither owner nor list", path, sddl)
	}
	_ = enablePrivilege("SeRestorePrivilege")
	handle, err := open(path, rights, shareAll, windows.OPEN_EXISTING, itself)
	if err != nil {
		return failed(err, "set the access list of %s", path)
	}
	defer windows.CloseHandle(handle)
	return failed(windows.SetSecurityInfo(handle, windows.SE_FILE_OBJECT, parts, owner, nil, access, nil),
		"set the access list of %s", path)
}

func (files) NewFolder(path, sddl string) error {
	path, err := clean(path)
	if err != nil {
		return err
	}
	path16, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return fmt.Errorf("make folder %s: %w", path, err)
	}
	security, err := securityOf(sddl)
	if err != nil {
		return err
	}
	return failed(windows.CreateDirectory(path16, security), "make folder %s", path)
}

func (f files) NewFile(path, sddl string) (platform.WriteFile, error) {
	path, err := clean(path)
	if err != nil {
		return nil, err
	}
	security, err := securityOf(sddl)
	if err != nil {
		return nil, err
	}
	handle, err := openAs(path, windows.GENERIC_WRITE|windows.READ_CONTROL, oneWriter, windows.CREATE_NEW,
		windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_OPEN_REPARSE_POINT, security)
	if err != nil {
		return nil, failed(err, "create %s", path)
	}
	return &openFile{file: os.NewFile(uintptr(handle), path), path: path}, nil
}

// KeepsACL reports whether the file system keeps access lists. It returns false only under
// Wine, which it detects by Wine's own function (ntdll's wine_get_version), so that no user's
// setting changes the result.
func (files) KeepsACL() bool { return simulated() != "wine" }

// securityOf returns the security attributes of a new file; nil if sddl is
// empty.
func securityOf(sddl string) (*windows.SecurityAttributes, error) {
	if sddl == "" {
		return nil, nil
	}
	descriptor, owner, err := parseSDDL(sddl)
	if err != nil {
		return nil, err
	}
	if owner != nil {
		// Giving a file to another account needs this privilege, which is disabled by default for
		// elevated administrators. If the privilege is needed but cannot be enabled, creating the
		// file fails.
		_ = enablePrivilege("SeRestorePrivilege")
	}
	return &windows.SecurityAttributes{
		Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: descriptor,
	}, nil
}

// parseSDDL returns the descriptor and its owner; the owner is nil if sddl has
// none.
func parseSDDL(sddl string) (*windows.SECURITY_DESCRIPTOR, *windows.SID, error) {
	descriptor, err := windows.SecurityDescriptorFromString(sddl)
	if err != nil {
		return nil, nil, failed(err, "parse the access list %q", sddl)
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return nil, nil, failed(err, "parse the owner in %q", sddl)
	}
	return descriptor, owner, nil
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

// enablePrivilege enables a privilege that this process's user holds.
func enablePrivilege(name string) error {
	name16, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	var token windows.Token
	err = windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES|windows.TOKEN_QUERY,
		&token)
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
