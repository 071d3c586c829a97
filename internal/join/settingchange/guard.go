package settingchange

import (
	"context"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/node"
)

// UnsafeError reports a file that swdt does not change, since an ordinary account may have written what it has.
type UnsafeError struct{ Path, Why, Remedy string }

func (e *UnsafeError) Error() string { return "change " + e.Path + ": " + e.Why + "; " + e.Remedy }

// guard returns an *UnsafeError if a file that changes is a link, or if an ordinary account can change it. The new file
// has the old one's content, and swdt starts the program with it: so it must be the administrator's.
func (p *Plan) guard(ctx context.Context, n *node.Node) error {
	for _, d := range p.drafts {
		if d.Path == "" || !d.changed() {
			continue
		}
		info, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: d.Path})
		if err != nil {
			return fmt.Errorf("look at %s: %w", d.Path, err)
		}
		if info.GetLink() {
			return &UnsafeError{d.Path, "it is a link, which may lead to another file at any time",
				"name the file itself in the settings of " + string(p.Program)}
		}
		if err := ownedByAdministrators(ctx, n, d.Path); err != nil {
			return err
		}
	}
	return nil
}

func ownedByAdministrators(ctx context.Context, n *node.Node, path string) error {
	acl, err := n.Files.GetACL(ctx, &agentv1.GetACLRequest{Path: path})
	if err != nil {
		return fmt.Errorf("read the access list of %s: %w", path, err)
	}
	by := access.OrdinaryChangers(acl.GetSddl())
	if len(by) == 0 {
		return nil
	}
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return fmt.Errorf("read the machine's facts: %w", err)
	}
	if facts.GetSimulated() == agentv1.Simulation_SIMULATION_WINE { // Wine keeps no access lists
		return nil
	}
	return &UnsafeError{path, fmt.Sprintf("the account %s can change it, so its content may not be the administrator's",
		strings.Join(by, ", ")), "read it, and restrict it with icacls: its owner and its access list"}
}
