package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/access"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/remedy"
)

// Changeable is a program, or the folder of one, that ordinary accounts may change.
type Changeable struct {
	Path string   `json:"path"`
	By   []string `json:"by"` // SIDs, or SDDL's abbreviations of them
}

// programFolders are the folders of the programs that a push or a join brings.
func programFolders(spec v1alpha1.Kubernetes) []string {
	folders := []string{v1alpha1.KubernetesFolder}
	for _, p := range spec.Provisioners {
		folder := p.Destination[:max(strings.LastIndex(p.Destination, `\`), 0)]
		if folder != "" && !slices.ContainsFunc(folders, func(other string) bool { return clean(other) == clean(folder) }) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// Changeable lists those of the paths that ordinary accounts may change.
func (l Looker) Changeable(ctx context.Context, paths ...string) ([]Changeable, error) {
	all := []Changeable{}
	for _, path := range paths {
		acl, err := l.Node.Files.GetACL(ctx, &agentv1.GetACLRequest{Path: path})
		if errors.Is(err, host.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if by := access.OrdinaryChangers(acl.GetSddl()); len(by) > 0 {
			all = append(all, Changeable{Path: path, By: by})
		}
	}
	return all, nil
}

func needChangeable(f *facts) error { return f.node.changeable.err }

// lookAtChangeable: Wine keeps no access lists.
func lookAtChangeable(f *facts) (all []Problem) {
	if f.node.machine.Simulated == "wine" {
		return nil
	}
	for _, c := range f.node.changeable.value {
		all = append(all, Problem{
			Severity: Warning, What: fmt.Sprintf("ordinary accounts can change %s, from which SYSTEM runs programs", c.Path),
			Evidence: "may change it: " + strings.Join(accountNames(c.By), ", "),
			Remedy: "let only administrators change it: `swdt join` does so for its own folders; " +
				"for any folder: " + remedy.Command("exec", "--", "icacls", c.Path, "/inheritance:r", "/grant",
				"*S-1-5-18:(OI)(CI)F", "*S-1-5-32-544:(OI)(CI)F", "*S-1-5-32-545:(OI)(CI)RX"),
		})
	}
	return all
}

// accountNames spells out the accounts that every Windows has.
func accountNames(sids []string) (names []string) {
	known := map[string]string{"BU": "Users", "AU": "Authenticated Users", "WD": "Everyone", "IU": "Interactive"}
	for _, sid := range sids {
		if name := known[sid]; name != "" {
			sid = name
		}
		names = append(names, sid)
	}
	return names
}
