package simulated

import (
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// account is the account that a process runs as.
type account struct {
	sid    string   // owner of the files that the account creates
	groups []string // all SIDs of the account, sid included
	// privileged reports whether the account can read and set every access list, take ownership of
	// files and assign the ownership to other accounts (SeBackup, SeRestore, SeTakeOwnership).
	privileged bool
}

// User is the SID of the machine's ordinary user; OtherUser is the SID of a second one.
const (
	User      = "S-1-5-21-1004336348-1177238915-682003330-1001"
	OtherUser = "S-1-5-21-1004336348-1177238915-682003330-1002"
)

// system returns the account of swdt and of services, which has the rights of both SYSTEM and the
// administrators.
func system() *account {
	return &account{sid: access.Administrators, groups: []string{access.Administrators, access.System, "BU", "AU",
		"WD"}, privileged: true}
}

func ordinary(sid string) *account {
	return &account{sid: sid, groups: []string{sid, "BU", "AU", "WD"}}
}

// nodeFolder is the folder of kubelet on a node; a fresh machine does not have the folder.
const nodeFolder = `C:\k`

// presetAccess returns the access lists of a fresh Windows Server, by folder, as `icacls` prints them for
// others: Users have (CI)(WD,AD,WEA,WA) in C:\ProgramData, and (CI)(S,WD,AD,X) in C:\Windows\Temp (wixtoolset/issues, on
// Burn and C:\Windows\Temp); OpenSSH's own folder has the list of Repair-SSHFolderPermission (PowerShell/openssh-portable
// a915f06, contrib/win32/openssh/OpenSSHUtils.psm1). Files and folders below these folders inherit the lists.
func presetAccess() map[string]string {
	const (
		installer = "O:S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
		readOnly  = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;OICIIO;FA;;;CO)"
		private   = "O:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
	)
	return map[string]string{
		`C:\Program Files`:       installer + readOnly,
		`C:\Program Files (x86)`: installer + readOnly,
		`C:\Windows`:             installer + readOnly,
		`C:\Windows\Temp`:        "O:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICIIO;FA;;;CO)(A;CI;0x100026;;;BU)",
		`C:\ProgramData`: "O:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICIIO;FA;;;CO)(A;OICI;0x1200a9;;;BU)" +
			"(A;CI;DCLCRPCR;;;BU)",
		`C:\ProgramData\ssh`: "O:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;AU)",
		profileFolder:        private,
		nodeFolder:           access.Programs, // the access list that `swdt join` sets
	}
}

// driveAccess is the access list of C:\ itself: all accounts may make folders in C:\, and files in
// those folders.
const driveAccess = "O:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CIIO;DC;;;BU)" +
	"(A;OICIIO;FA;;;CO)"

// granted returns the rights that an account has to a file: the entries in their order, up to the first that decides a
// right ("How DACLs Control Access to an Object"). No list grants everything. The owner has READ_CONTROL and WRITE_DAC
// ([MS-DTYP] 2.5.3.2; "Owner of a New Object" names WRITE_DAC alone).
func (f *file) granted(a *account) access.Rights {
	if f.security.NoLimits {
		return access.All
	}
	var allowed, denied access.Rights
	if slices.Contains(a.groups, f.security.Owner) {
		allowed = access.ReadControl | access.WriteDAC
	}
	for _, e := range f.security.Entries {
		switch {
		case e.Only || !slices.Contains(a.groups, e.Account):
		case e.Deny:
			denied |= e.Rights &^ allowed
		default:
			allowed |= e.Rights &^ denied
		}
	}
	return allowed
}

// allow returns nil if an account has all of these rights to a file.
func (f *file) allow(a *account, want access.Rights) error {
	if f.granted(a)&want != want {
		return fmt.Errorf("%s: access is denied: %w", f.path(), fault.ErrPermission)
	}
	return nil
}

// allowAdding returns nil if an account may add a file to the folder f or, if the parameter
// `folder` is true, a folder.
func (f *file) allowAdding(a *account, folder bool) error {
	if folder {
		return f.allow(a, access.AppendData)
	}
	return f.allow(a, access.WriteData)
}

// allowTaking returns nil if an account may remove or rename a file: with DELETE to it, or FILE_DELETE_CHILD to its folder
// ("File Access Rights Constants").
func (f *file) allowTaking(a *account) error {
	if f.parent != nil && f.parent.granted(a)&access.DeleteChild != 0 {
		return nil
	}
	return f.allow(a, access.Delete)
}

// create sets the owner and access list of a new file that is already in its folder. If sddl is
// empty, the file inherits the list of the folder.
func (f *file) create(by *account, sddl string) error {
	f.security = access.List{Owner: by.sid, HasList: true}
	if sddl == "" {
		f.security.Entries = f.inherited()
		if len(f.security.Entries) == 0 { // the default list of the process's token ("DACL for a New Object")
			f.security.Entries = []access.Entry{{Rights: access.All, Account: access.System},
				{Rights: access.All, Account: by.sid}}
		}
		return nil
	}
	return f.setSecurity(by, sddl)
}

// Without SeRestorePrivilege, an account can make only itself, or a group of its own, the owner: all others are
// ERROR_INVALID_OWNER, 1307 (learn.microsoft.com/answers/questions/403989). It needs WRITE_OWNER for that, and WRITE_DAC for
// the list ([MS-FSA] 2.1.5.17).
//
// mayChange returns nil if an account may set the parts of a file's security that sddl names.
func (f *file) mayChange(by *account, sddl string) error {
	if by.privileged {
		return nil
	}
	l, err := access.Parse(sddl)
	if err != nil {
		return err
	}
	var want access.Rights
	if l.HasList {
		want |= access.WriteDAC
	}
	if l.Owner != "" {
		want |= access.WriteOwner
	}
	return f.allow(by, want)
}

// setSecurity sets the parts of a file's security that an SDDL text names. If the file is a folder,
// its contents inherit the new list.
func (f *file) setSecurity(by *account, sddl string) error {
	l, err := access.Parse(sddl)
	if err != nil {
		return err
	}
	if l.Owner != "" && !by.privileged && !slices.Contains(by.groups, l.Owner) {
		return fmt.Errorf("this account cannot make %s the owner: %w", l.Owner, fault.ErrPermission)
	}
	if l.Owner != "" {
		f.security.Owner = l.Owner
	}
	if !l.HasList {
		return nil
	}
	f.security.HasList, f.security.Protected, f.security.NoLimits = true, l.Protected, l.NoLimits
	f.security.Entries = slices.DeleteFunc(l.Entries, func(e access.Entry) bool { return e.Inherited })
	f.inherit()
	return nil
}

// inherit replaces the inherited entries of a file and of everything below it, as SetNamedSecurityInfo does ("Automatic
// Propagation of Inheritable ACEs").
func (f *file) inherit() {
	if !f.security.Protected {
		own := slices.DeleteFunc(slices.Clone(f.security.Entries), func(e access.Entry) bool { return e.Inherited })
		f.security.Entries = append(own, f.inherited()...)
	}
	if f.link != "" {
		return
	}
	for _, child := range f.children {
		child.inherit()
	}
}

// inherited returns the entries that a file inherits from its folder.
func (f *file) inherited() (all []access.Entry) {
	if f.parent == nil {
		return nil
	}
	for _, e := range f.parent.security.Entries {
		all = append(all, passOn(e, f.folder, f.security.Owner)...)
	}
	return all
}

// passOn returns the entries that a child inherits from the entry e of its folder ("ACE Inheritance Rules"). The parameter
// `owner` is the child's owner, and `folder` reports whether the child is a folder.
func passOn(e access.Entry, folder bool, owner string) []access.Entry {
	child := e
	child.Inherited, child.Only = true, false
	switch {
	case !folder && !e.Files, folder && !e.Folders && (!e.Files || e.Once):
		return nil
	case !folder || e.Once:
		child.Files, child.Folders, child.Once = false, false, false
	case !e.Folders: // the entry does not apply to this folder, only to files in it
		child.Only = true
	}
	if e.Account != creatorOwner {
		return []access.Entry{child}
	}
	effective := child
	effective.Account, effective.Files, effective.Folders = owner, false, false
	further := child
	further.Only = true
	switch {
	case child.Only:
		return []access.Entry{further}
	case !child.Files && !child.Folders:
		return []access.Entry{effective}
	}
	return []access.Entry{effective, further}
}

// creatorOwner is a placeholder in a folder's access list. It stands for the account that creates a
// file or folder there.
const creatorOwner = "CO"
