// Package access parses Windows access lists in their text form (SDDL). It reports who owns a
// file, and which accounts besides the administrators may change the file. It calls no Windows
// API, and leaves all decisions to its callers.
package access

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Safe access lists, for the creation of a file or folder. Only SYSTEM and Administrators have
// access, and nothing is inherited. The owner is SYSTEM, which no ordinary user can set. Versions
// of swdt without these lists did not set this owner either, so a file with this owner has been
// restricted since its creation.
const (
	SafeFolder = "O:SYD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
	SafeFile   = "O:SYD:P(A;;FA;;;SY)(A;;FA;;;BA)"
)

// Accounts that are part of the machine itself (see Trusted), in the spelling of List.
const (
	System           = "SY"
	Administrators   = "BA"
	trustedInstaller = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
)

// Rights is a file's access mask.
type Rights uint32

// The rights to a file. If a bit has another meaning for a folder, the comment behind the bit names
// that meaning.
const (
	ReadData        Rights = 0x1 // list
	WriteData       Rights = 0x2 // add a file
	AppendData      Rights = 0x4 // add a folder
	ReadEA          Rights = 0x8
	WriteEA         Rights = 0x10
	Execute         Rights = 0x20
	DeleteChild     Rights = 0x40
	ReadAttributes  Rights = 0x80
	WriteAttributes Rights = 0x100
	Delete          Rights = 0x10000
	ReadControl     Rights = 0x20000
	WriteDAC        Rights = 0x40000
	WriteOwner      Rights = 0x80000

	All          Rights = 0x1f01ff
	genericRead  Rights = 0x120089
	genericWrite Rights = 0x120116
	genericRun   Rights = 0x1200a0

	// changing has all rights that allow changing a file's content, name or access.
	changing = WriteData | AppendData | DeleteChild | Delete | WriteDAC | WriteOwner
	// replacing has all rights that allow replacing what is in a folder, or the folder.
	replacing = DeleteChild | Delete | WriteDAC | WriteOwner
)

// Entry is one entry of an access list.
type Entry struct {
	Deny      bool
	Rights    Rights
	Account   string // a SID, or the two letters that SDDL has for a well-known SID
	Files     bool   // SDDL's OI: inherited by files
	Folders   bool   // SDDL's CI: inherited by folders
	Once      bool   // SDDL's NP: not inherited any further
	Only      bool   // SDDL's IO: no effect on the folder itself, only on files and folders that inherit the entry
	Inherited bool   // SDDL's ID: inherited from a parent folder
}

// List is the owner and the access list of a file.
type List struct {
	Owner     string
	Protected bool // inherits nothing from the parent folder
	HasList   bool // the text has an access list, which may be empty
	NoLimits  bool // a null list: all accounts have all rights
	Entries   []Entry
}

// Parse parses the owner and the access list of an SDDL text. It ignores the group and the audit
// list. An entry of an unknown kind is an error, since the entry may grant access.
func Parse(sddl string) (List, error) {
	var l List
	parts, err := split(sddl)
	if err != nil {
		return l, err
	}
	l.Owner = short(parts['O'])
	list, ok := parts['D']
	if !ok {
		return l, nil
	}
	flags, entries, _ := strings.Cut(list, "(")
	l.HasList, l.Protected = true, strings.Contains(flags, "P")
	l.NoLimits = strings.Contains(flags, "NO_ACCESS_CONTROL")
	for entries != "" {
		text, rest, closed := strings.Cut(entries, ")")
		if !closed {
			return l, unreadable(sddl)
		}
		entry, err := parseEntry(text)
		if err != nil {
			return l, err
		}
		l.Entries = append(l.Entries, entry)
		entries = strings.TrimPrefix(rest, "(")
	}
	return l, nil
}

func unreadable(sddl string) error {
	return fmt.Errorf("parse the access list %q: %w", sddl, fs.ErrInvalid)
}

// split splits O:…G:…D:…S:… into its parts.
func split(sddl string) (map[byte]string, error) {
	parts := map[byte]string{}
	depth, current, start := 0, byte(0), 0
	for i := range len(sddl) {
		switch c := sddl[i]; {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0 && strings.IndexByte("OGDS", c) >= 0 && strings.HasPrefix(sddl[i+1:], ":"):
			if current != 0 {
				parts[current] = sddl[start:i]
			}
			current, start = c, i+2
		}
	}
	if current == 0 || depth != 0 {
		return nil, unreadable(sddl)
	}
	parts[current] = sddl[start:]
	return parts, nil
}

func parseEntry(text string) (Entry, error) {
	fields := strings.Split(text, ";")
	if len(fields) != 6 || fields[0] != "A" && fields[0] != "D" || len(fields[1])%2 != 0 {
		return Entry{}, unreadable(text)
	}
	rights, err := parseRights(fields[2])
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Deny: fields[0] == "D", Rights: rights, Account: short(fields[5])}
	for flags := fields[1]; flags != ""; flags = flags[2:] {
		switch flags[:2] {
		case "OI":
			e.Files = true
		case "CI":
			e.Folders = true
		case "NP":
			e.Once = true
		case "IO":
			e.Only = true
		case "ID":
			e.Inherited = true
		default:
			return Entry{}, unreadable(text)
		}
	}
	return e, nil
}

func parseRights(text string) (Rights, error) {
	if n, err := strconv.ParseUint(text, 0, 32); err == nil {
		return expand(Rights(n)), nil
	}
	if len(text)%2 != 0 {
		return 0, unreadable(text)
	}
	var all Rights
	for ; text != ""; text = text[2:] {
		one := named(text[:2])
		if one == 0 {
			return 0, unreadable(text)
		}
		all |= one
	}
	return all, nil
}

func named(word string) Rights {
	switch word {
	case "FA", "GA":
		return All
	case "FR", "GR":
		return genericRead
	case "FW", "GW":
		return genericWrite
	case "FX", "GX":
		return genericRun
	case "SD":
		return Delete
	case "RC":
		return ReadControl
	case "WD":
		return WriteDAC
	case "WO":
		return WriteOwner
	}
	// SDDL's names for the rights to objects of a directory service. For a file, each name stands
	// for the same bit.
	if i := strings.Index("CCDCLCSWRPWPDTLOCR", word); i >= 0 && i%2 == 0 {
		return 1 << (i / 2)
	}
	return 0
}

// expand replaces generic rights by the corresponding rights of files.
func expand(r Rights) Rights {
	for bit, means := range map[Rights]Rights{0x80000000: genericRead, 0x40000000: genericWrite, 0x20000000: genericRun,
		0x10000000: All} {
		if r&bit != 0 {
			r = r&^bit | means
		}
	}
	return r
}

// short returns SDDL's abbreviation of a SID if the switch below has one, or else the SID unchanged.
func short(sid string) string {
	switch sid {
	case "S-1-5-32-544":
		return Administrators
	case "S-1-5-18":
		return System
	case "S-1-5-32-545":
		return "BU"
	case "S-1-5-11":
		return "AU"
	case "S-1-1-0":
		return "WD"
	case "S-1-3-0":
		return "CO"
	}
	return sid
}

// String returns the list as SDDL.
func (l List) String() string {
	var b strings.Builder
	if l.Owner != "" {
		b.WriteString("O:" + l.Owner)
	}
	if !l.HasList {
		return b.String()
	}
	b.WriteString("D:")
	if l.Protected {
		b.WriteString("P")
	}
	b.WriteString("AI")
	if l.NoLimits {
		b.WriteString("NO_ACCESS_CONTROL")
	}
	for _, e := range l.Entries {
		b.WriteString(e.String())
	}
	return b.String()
}

// String returns the entry as SDDL.
func (e Entry) String() string {
	kind, flags := "A", ""
	if e.Deny {
		kind = "D"
	}
	for _, f := range []struct {
		on   bool
		name string
	}{{e.Files, "OI"}, {e.Folders, "CI"}, {e.Once, "NP"}, {e.Only, "IO"}, {e.Inherited, "ID"}} {
		if f.on {
			flags += f.name
		}
	}
	rights := "0x" + strconv.FormatUint(uint64(e.Rights), 16)
	switch e.Rights {
	case All:
		rights = "FA"
	case genericRead:
		rights = "FR"
	case genericWrite:
		rights = "FW"
	case genericRun:
		rights = "FX"
	}
	return "(" + kind + ";" + flags + ";" + rights + ";;;" + e.Account + ")"
}

// Access lists of folders that hold programs of SYSTEM or the settings of such programs. Both
// lists let every user read. With the list Programs, only SYSTEM and administrators can change
// anything in the folder, at any depth. Shared is the list of a folder that contains such a
// folder: ordinary accounts cannot change the Shared folder itself, but new files and folders in
// it inherit the access that Windows Server gives to a folder in the root of a drive.
const (
	Programs = "O:BAD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1200a9;;;BU)"
	Shared   = Programs + "(A;CIIO;LC;;;BU)(A;CIIO;DC;;;BU)(A;OICIIO;FA;;;CO)"
)

// OrdinaryChangers returns the accounts that List.Changers returns for an access list in SDDL,
// except the machine's built-in administrator, which has the account number 500. If the list
// cannot be parsed, OrdinaryChangers returns WD, which means every account.
func OrdinaryChangers(sddl string) (accounts []string) {
	list, err := Parse(sddl)
	if err != nil {
		return []string{"WD"}
	}
	for _, account := range list.Changers() {
		if !IsBuiltInAdministrator(account) {
			accounts = append(accounts, account)
		}
	}
	return accounts
}

// IsBuiltInAdministrator reports whether an account is the machine's built-in administrator, or that of its domain.
func IsBuiltInAdministrator(account string) bool {
	return account == "LA" || strings.HasPrefix(account, "S-1-5-21-") && strings.HasSuffix(account, "-500")
}

// Trusted reports whether an account belongs to the machine itself: SYSTEM, the administrators or
// Windows' own installer.
func Trusted(account string) bool {
	return account == System || account == Administrators || account == trustedInstaller
}

// Exclusive reports whether a trusted account owns the file and only trusted accounts have any
// access to the file. If the file is a folder, only trusted accounts may inherit access to new
// files in the folder, too.
func (l List) Exclusive() bool {
	if !Trusted(l.Owner) || !l.HasList || l.NoLimits {
		return false
	}
	for _, e := range l.Entries {
		if !e.Deny && !Trusted(e.Account) {
			return false
		}
	}
	return true
}

// Changers returns the accounts, other than the trusted ones, that may change the file or, if the
// file is a folder, add, replace or remove something in it. An owner that is not trusted is
// always among these accounts, since an owner can change the list. Entries that deny access are
// ignored. Without an access list, Changers returns WD, which means every account.
func (l List) Changers() []string { return l.holders(changing) }

// Replacers returns the accounts, other than the trusted ones, that may replace what is in a folder, or the folder.
// Accounts that may only add to the folder are not among them. For the rest, Replacers is as Changers.
func (l List) Replacers() []string { return l.holders(replacing) }

// holders returns the accounts, other than the trusted ones, that have one of the rights.
func (l List) holders(rights Rights) []string {
	if l.NoLimits || !l.HasList {
		return []string{"WD"}
	}
	var all []string
	add := func(account string) {
		for _, one := range all {
			if one == account {
				return
			}
		}
		all = append(all, account)
	}
	if !Trusted(l.Owner) {
		add(l.Owner)
	}
	for _, e := range l.Entries {
		if !e.Deny && !e.Only && e.Rights&rights != 0 && !Trusted(e.Account) {
			add(e.Account)
		}
	}
	return all
}
