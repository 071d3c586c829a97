package simulated

import (
	"fmt"
	"io/fs"
	"strings"
)

// security is a file's owner and its own access control entries, as SDDL.
type security struct {
	owner     string
	entries   []string // (A;OICI;FA;;;BA)
	protected bool     // does not inherit
}

func rootSecurity() security {
	return security{owner: "BA", protected: true, entries: []string{
		"(A;OICI;FA;;;SY)", "(A;OICI;FA;;;BA)", "(A;OICI;0x1200a9;;;BU)",
	}}
}

// sddl is owner and access list, inherited entries included.
func (f *file) sddl() string {
	flags := "AI"
	if f.security.protected {
		flags = "PAI"
	}
	return "O:" + f.security.owner + "D:" + flags + strings.Join(f.allEntries(), "")
}

func (f *file) allEntries() []string {
	all := append([]string(nil), f.security.entries...)
	if f.security.protected || f.parent == nil {
		return all
	}
	for _, entry := range f.parent.allEntries() {
		if inherited, ok := inherit(entry, f.folder); ok {
			all = append(all, inherited)
		}
	}
	return all
}

// inherit is what a child gets of its folder's entry.
func inherit(entry string, folder bool) (string, bool) {
	fields := strings.Split(strings.Trim(entry, "()"), ";")
	if len(fields) != 6 {
		return "", false
	}
	objects, containers := strings.Contains(fields[1], "OI"), strings.Contains(fields[1], "CI")
	switch {
	case !folder && objects:
		fields[1] = "ID"
	case folder && objects && containers:
		fields[1] = "OICIID"
	case folder && containers:
		fields[1] = "CIID"
	case folder && objects:
		fields[1] = "OIIOID"
	default:
		return "", false
	}
	return "(" + strings.Join(fields, ";") + ")", true
}

// set takes over the parts that an SDDL text names.
func (s *security) set(sddl string) error {
	parts, err := splitSDDL(sddl)
	if err != nil {
		return err
	}
	if owner, ok := parts['O']; ok {
		s.owner = shortSID(owner)
	}
	list, ok := parts['D']
	if !ok {
		return nil
	}
	flags, entries, _ := strings.Cut(list, "(")
	s.protected = strings.Contains(flags, "P")
	s.entries = nil
	for entry := range strings.SplitSeq(strings.TrimSuffix(entries, ")"), ")(") {
		fields := strings.Split(entry, ";")
		if entry == "" || (len(fields) == 6 && strings.Contains(fields[1], "ID")) {
			continue // inherited: comes from the folder
		}
		if len(fields) != 6 {
			return fmt.Errorf("SDDL entry (%s): %w", entry, fs.ErrInvalid)
		}
		fields[5] = shortSID(fields[5])
		s.entries = append(s.entries, "("+strings.Join(fields, ";")+")")
	}
	return nil
}

// splitSDDL takes O:…G:…D:…S:… apart.
func splitSDDL(sddl string) (map[byte]string, error) {
	parts := map[byte]string{}
	depth, current, start := 0, byte(0), 0
	for i := 0; i < len(sddl); i++ {
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
		return nil, fmt.Errorf("SDDL %q: %w", sddl, fs.ErrInvalid)
	}
	parts[current] = sddl[start:]
	return parts, nil
}

func shortSID(sid string) string {
	switch sid {
	case "S-1-5-32-544":
		return "BA"
	case "S-1-5-18":
		return "SY"
	case "S-1-5-32-545":
		return "BU"
	}
	return sid
}
