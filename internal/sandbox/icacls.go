package sandbox

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/host"
)

// icacls is as much of Windows' icacls.exe as an installer over SSH uses:
//
//	icacls PATH [/reset] [/setowner WHO] [/inheritance:r|e|d] [/grant[:r] WHO:RIGHTS…] [/remove WHO…] [/t] [/c] [/q]
func icacls(files host.Files, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stdout, "ICACLS name [/grant[:r] Sid:perm[...]] [/setowner user] [/inheritance:e|d|r] [/remove Sid]\r\n")
		return 0
	}
	path := args[0]
	sddl, err := files.ACL(path)
	if err != nil {
		return icaclsFailed(path, err, stdout, stderr)
	}
	changed, err := applyIcacls(sddl, args[1:])
	if err != nil {
		fmt.Fprintf(stderr, "Invalid parameter %q\r\n", err.Error())
		return 87
	}
	if changed != sddl {
		if err := files.SetACL(path, changed); err != nil {
			return icaclsFailed(path, err, stdout, stderr)
		}
	}
	fmt.Fprintf(stdout, "processed file: %s\r\nSuccessfully processed 1 files; Failed processing 0 files\r\n", path)
	return 0
}

func icaclsFailed(path string, err error, stdout, stderr io.Writer) int {
	text, code := err.Error(), 1
	switch {
	case errors.Is(err, host.ErrNotExist):
		text, code = "The system cannot find the file specified.", 2
	case errors.Is(err, host.ErrPermission):
		text, code = "Access is denied.", 5
	}
	fmt.Fprintf(stderr, "%s: %s\r\n", path, text)
	fmt.Fprint(stdout, "Successfully processed 0 files; Failed processing 1 files\r\n")
	return code
}

// acl is a security descriptor taken apart.
type acl struct {
	owner, group string
	flags        string // of the access list: P, AI…
	entries      []string
}

func parseACL(sddl string) acl {
	part := func(letter string) string {
		m := regexp.MustCompile(letter + `:([^:(]*?)(?:[OGDS]:|\(|$)`).FindStringSubmatch(sddl)
		if m == nil {
			return ""
		}
		return m[1]
	}
	_, list, _ := strings.Cut(sddl, "D:")
	return acl{
		owner: part("O"), group: part("G"), flags: part("D"),
		entries: regexp.MustCompile(`\([^()]*\)`).FindAllString(list, -1),
	}
}

func (a acl) String() string {
	var b strings.Builder
	if a.owner != "" {
		b.WriteString("O:" + a.owner)
	}
	if a.group != "" {
		b.WriteString("G:" + a.group)
	}
	b.WriteString("D:" + a.flags + strings.Join(a.entries, ""))
	return b.String()
}

// applyIcacls applies options to a security descriptor; its error is the option
// that was not understood.
func applyIcacls(sddl string, options []string) (string, error) {
	a := parseACL(sddl)
	verb, replace := "", false
	for _, option := range options {
		lower := strings.ToLower(option)
		if strings.HasPrefix(lower, "/") {
			verb, replace = "", strings.HasSuffix(lower, ":r")
			switch lower {
			case "/t", "/c", "/q", "/l":
			case "/inheritance:r":
				a.flags = "PAI"
				a.entries = slices.DeleteFunc(a.entries, inherited)
			case "/reset":
				a.flags = "AI"
				a.entries = slices.DeleteFunc(a.entries, func(entry string) bool { return !inherited(entry) })
			case "/inheritance:d":
				a.flags = "PAI"
			case "/inheritance:e":
				a.flags = "AI"
			case "/grant", "/grant:r", "/setowner", "/remove":
				verb, _, _ = strings.Cut(lower, ":")
			default:
				return "", errors.New(option)
			}
			continue
		}
		switch verb {
		case "/setowner":
			a.owner = trustee(option)
		case "/remove":
			a.remove(trustee(option))
		case "/grant":
			who, rights, _ := strings.Cut(option, ":")
			if replace {
				a.remove(trustee(who))
			}
			a.entries = append(a.entries, entry(rights, trustee(who)))
		default:
			return "", errors.New(option)
		}
	}
	return a.String(), nil
}

func inherited(entry string) bool {
	fields := strings.Split(entry, ";")
	return len(fields) > 1 && strings.Contains(fields[1], "ID")
}

func (a *acl) remove(who string) {
	a.entries = slices.DeleteFunc(a.entries, func(entry string) bool { return strings.HasSuffix(entry, ";"+who+")") })
}

// entry is an access-allowed entry; rights are as icacls writes them, (OI)(CI)F.
func entry(rights, who string) string {
	mask := map[string]string{"F": "FA", "M": "0x1301bf", "RX": "0x1200a9", "R": "FR", "W": "FW"}
	open := strings.LastIndex(rights, ")") + 1
	flags := strings.NewReplacer("(", "", ")", "").Replace(rights[:open])
	access := rights[open:]
	if known, ok := mask[strings.ToUpper(access)]; ok {
		access = known
	}
	return "(A;" + strings.ToUpper(flags) + ";" + access + ";;;" + who + ")"
}

// trustee is the SDDL name of who *S-1-5-18 or SYSTEM is.
func trustee(who string) string {
	known := map[string]string{
		"*S-1-5-32-544": "BA", "ADMINISTRATORS": "BA", `BUILTIN\ADMINISTRATORS`: "BA",
		"*S-1-5-18": "SY", "SYSTEM": "SY", `NT AUTHORITY\SYSTEM`: "SY",
		"*S-1-5-32-545": "BU", "USERS": "BU", `BUILTIN\USERS`: "BU",
		"*S-1-5-11": "AU", "*S-1-1-0": "WD", "EVERYONE": "WD",
	}
	if short, ok := known[strings.ToUpper(who)]; ok {
		return short
	}
	return strings.TrimPrefix(who, "*")
}
