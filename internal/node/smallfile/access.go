package smallfile

import (
	"context"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
)

// Administrators is the access list of a file that belongs to Administrators and that
// only Administrators and SYSTEM can access. The file inherits nothing from its folder.
const Administrators = "O:BAD:PAI(A;;FA;;;BA)(A;;FA;;;SY)"

// Restrict gives a file or folder the access list sddl, which must grant access to Administrators
// and SYSTEM alone. It returns an error if other accounts still have access afterwards.
func Restrict(ctx context.Context, n *node.Node, path, sddl string) error {
	if _, err := n.Files.SetACL(ctx, &agentv1.SetACLRequest{Path: path, Sddl: sddl}); err != nil {
		return fmt.Errorf("restrict access to %s: %w", path, err)
	}
	is, err := Restricted(ctx, n, path)
	if err != nil {
		return err
	}
	if !is {
		return notRestricted(path, nil)
	}
	return nil
}

func notRestricted(path string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("restrict access to %s: other accounts still have access; is the file system NTFS?", path)
}

// Restricted reports whether only Administrators and SYSTEM have access to path. On Wine it always
// returns true: Wine keeps no access lists, and derives a file's access list from the mode of the
// Linux file.
func Restricted(ctx context.Context, n *node.Node, path string) (bool, error) {
	acl, err := n.Files.GetACL(ctx, &agentv1.GetACLRequest{Path: path})
	if err != nil {
		return false, fmt.Errorf("read the access list of %s: %w", path, err)
	}
	if isRestricted(acl.GetSddl()) {
		return true, nil
	}
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return false, fmt.Errorf("read the machine's facts: %w", err)
	}
	return facts.GetSimulated() == agentv1.Simulation_SIMULATION_WINE, nil
}

// isRestricted reports whether the owner is Administrators or SYSTEM, and whether exactly these two
// accounts have access, each with all rights. Windows may list the two accounts in any order, and
// may write well-known SIDs and rights as letters.
func isRestricted(sddl string) bool {
	owner, list := splitSDDL(sddl)
	if !isAdministrators(owner) && !isSystem(owner) {
		return false
	}
	flags, entries, _ := strings.Cut(list, "(")
	if !strings.Contains(flags, "P") {
		return false // an unprotected list also inherits the entries of the folder
	}
	var administrators, system bool
	for _, entry := range strings.Split(strings.TrimSuffix(entries, ")"), ")(") {
		fields := strings.Split(entry, ";")
		if len(fields) != 6 || fields[0] != "A" || fields[2] != "FA" && !strings.EqualFold(fields[2], "0x1f01ff") {
			return false
		}
		switch trustee := fields[5]; {
		case isAdministrators(trustee):
			administrators = true
		case isSystem(trustee):
			system = true
		default:
			return false
		}
	}
	return administrators && system
}

// splitSDDL returns the owner and the access list, and ignores a group and an audit
// list.
func splitSDDL(sddl string) (owner, list string) {
	rest, ok := strings.CutPrefix(sddl, "O:")
	if ok {
		owner = rest
		for _, next := range []string{"G:", "D:", "S:"} {
			owner, _, _ = strings.Cut(owner, next)
		}
	}
	_, list, _ = strings.Cut(sddl, "D:")
	list, _, _ = strings.Cut(list, "S:")
	return owner, list
}

func isAdministrators(sid string) bool { return sid == "BA" || sid == "S-1-5-32-544" }
func isSystem(sid string) bool         { return sid == "SY" || sid == "S-1-5-18" }
