package simulated

import (
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/access"
	"github.com/swdt-dev/swdt/internal/host"
)

// account is whom a process runs as.
type account struct {
	sid    string   // owner of what it creates
	groups []string // all that it counts as, sid included
	// privileged accounts can read and set every access list, take ownership and give
	// it away (SeBackup, SeRestore, SeTakeOwnership).
	privileged bool
}

// User is the SID of the machine's ordinary user; OtherUser is a second one.
const (
	User      = "S-1-5-21-1004336348-1177238915-682003330-1001"
	OtherUser = "S-1-5-21-1004336348-1177238915-682003330-1002"
)

// system is SYSTEM and the administrators in one: what swdt and services run as.
func system() *account {
	return &account{sid: access.Administrators, groups: []string{access.Administrators, access.System, "BU", "AU", "WD"}, privileged: true}
}

func ordinary(sid string) *account {
	return &account{sid: sid, groups: []string{sid, "BU", "AU", "WD"}}
}

// nodeFolder has kubelet on a node, and is not there on a fresh machine.
const nodeFolder = `C:\k`

// The access lists of a fresh Windows Server, by folder. What is below inherits.
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
		`C:\Windows\Temp`:        "O:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICIIO;FA;;;CO)(A;CI;CCDCLCSWRPWPDTLOCRRC;;;BU)",
		`C:\ProgramData`:         "O:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICIIO;FA;;;CO)(A;OICI;0x1200a9;;;BU)(A;CI;DCLCRPCR;;;BU)",
		`C:\ProgramData\ssh`:     "O:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;AU)",
		profileFolder:            private,
		nodeFolder:               access.Programs, // as a join leaves it
	}
}

// driveAccess is that of C:\ itself: everybody may make folders in it, and files in
// those.
const driveAccess = "O:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)(A;CI;LC;;;BU)(A;CIIO;DC;;;BU)(A;OICIIO;FA;;;CO)"

// granted are the rights that an account has to a file.
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

// allow is nil if an account has all of these rights to a file.
func (f *file) allow(a *account, want access.Rights) error {
	if f.granted(a)&want != want {
		return fmt.Errorf("%s: access is denied: %w", f.path(), host.ErrPermission)
	}
	return nil
}

// allowAdding is nil if an account may create something in a folder.
func (f *file) allowAdding(a *account, folder bool) error {
	if folder {
		return f.allow(a, access.AppendData)
	}
	return f.allow(a, access.WriteData)
}

// allowTaking is nil if an account may remove or rename a file.
func (f *file) allowTaking(a *account) error {
	if f.parent != nil && f.parent.granted(a)&access.DeleteChild != 0 {
		return nil
	}
	return f.allow(a, access.Delete)
}

// born gives a new file its security, once it has its place: what sddl names, or else
// what its folder passes on.
func (f *file) born(by *account, sddl string) error {
	f.security = access.List{Owner: by.sid, HasList: true}
	if sddl == "" {
		f.security.Entries = f.inherited()
		if len(f.security.Entries) == 0 { // what the process's token says
			f.security.Entries = []access.Entry{{Rights: access.All, Account: access.System}, {Rights: access.All, Account: by.sid}}
		}
		return nil
	}
	return f.setSecurity(by, sddl)
}

// mayChange is nil if an account may set those parts of a file's security that sddl
// names.
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

// setSecurity takes over the parts that an SDDL text names. What is below a folder
// inherits anew.
func (f *file) setSecurity(by *account, sddl string) error {
	l, err := access.Parse(sddl)
	if err != nil {
		return err
	}
	if l.Owner != "" && !by.privileged && !slices.Contains(by.groups, l.Owner) {
		return fmt.Errorf("this account cannot make %s the owner: %w", l.Owner, host.ErrPermission)
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

// inherit replaces what a file and all below it inherit by what its folder passes on.
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

// inherited is what a file gets of its folder's entries.
func (f *file) inherited() (all []access.Entry) {
	if f.parent == nil {
		return nil
	}
	for _, e := range f.parent.security.Entries {
		all = append(all, passOn(e, f.folder, f.security.Owner)...)
	}
	return all
}

// passOn is what a child of that owner gets of its folder's entry.
func passOn(e access.Entry, folder bool, owner string) []access.Entry {
	child := e
	child.Inherited, child.Only = true, false
	switch {
	case !folder && !e.Files, folder && !e.Folders && (!e.Files || e.Once):
		return nil
	case !folder || e.Once:
		child.Files, child.Folders, child.Once = false, false, false
	case !e.Folders: // of use to the files below alone
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

// creatorOwner stands in a folder's list for whoever makes something in it.
const creatorOwner = "CO"
