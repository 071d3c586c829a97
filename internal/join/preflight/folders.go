package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Changeable is a program, or a folder of programs, that ordinary accounts may change.
type Changeable struct {
	Path string   `json:"path"`
	By   []string `json:"by"` // SIDs, or SDDL's abbreviations of them
	// Programs are the components that SYSTEM runs from Path.
	Programs []string `json:"programs,omitempty"`
	// File reports whether Path is the program itself.
	File bool `json:"file,omitempty"`
}

// Program is a program that SYSTEM runs or will run.
type Program struct {
	Name   string // the component's name
	Path   string // the path of the program, or of its folder if only the folder is known
	Folder bool   // Path is the path of the folder
}

// programsOf returns the programs that a push or a join installs. It names only their folders,
// since the files will be replaced.
func programsOf(spec v1alpha1.Kubernetes) []Program {
	all := []Program{{Name: "kubelet", Path: v1alpha1.KubernetesFolder, Folder: true}}
	for _, p := range spec.Provisioners {
		if folder := folderOf(p.Destination); folder != "" {
			all = append(all, Program{Name: p.Name, Path: folder, Folder: true})
		}
	}
	return all
}

func folderOf(path string) string {
	path = strings.ReplaceAll(path, "/", `\`)
	return path[:max(strings.LastIndex(path, `\`), 0)]
}

// Changeable returns the programs and the folders of programs that ordinary accounts may change,
// each once. If every account that may change a file may also change its folder, the result has
// only the folder.
func (l Looker) Changeable(ctx context.Context, programs ...Program) ([]Changeable, error) {
	all := []Changeable{}
	for _, place := range placesOf(programs) {
		acl, err := l.Node.Files.GetACL(ctx, &agentv1.GetACLRequest{Path: place.Path})
		if errors.Is(err, fault.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		place.By = access.OrdinaryChangers(acl.GetSddl())
		if len(place.By) > 0 && !(place.File && saysFolder(all, place)) {
			all = append(all, place)
		}
	}
	return all, nil
}

// placesOf returns the folders of programs and then their files, each once, with the names of the
// programs that run from each of them.
func placesOf(programs []Program) (places []Changeable) {
	add := func(path, name string, file bool) {
		at := slices.IndexFunc(places, func(c Changeable) bool { return clean(c.Path) == clean(path) })
		if at < 0 {
			at, places = len(places), append(places, Changeable{Path: path, File: file})
		}
		if !slices.Contains(places[at].Programs, name) {
			places[at].Programs = append(places[at].Programs, name)
		}
	}
	for _, p := range programs {
		if p.Folder {
			add(p.Path, p.Name, false)
		} else {
			add(folderOf(p.Path), p.Name, false)
		}
	}
	for _, p := range programs {
		if !p.Folder {
			add(p.Path, p.Name, true)
		}
	}
	return places
}

// saysFolder reports whether the finding about a file's folder already covers the file.
func saysFolder(found []Changeable, file Changeable) bool {
	return slices.ContainsFunc(found, func(c Changeable) bool {
		return clean(c.Path) == clean(folderOf(file.Path)) &&
			!slices.ContainsFunc(file.By, func(sid string) bool { return !slices.Contains(c.By, sid) })
	})
}

func needChangeable(f *facts) error { return f.node.changeable.err }

// lookAtChangeable finds programs and folders that ordinary accounts may change. It finds
// none on Wine, which keeps no access lists.
func lookAtChangeable(f *facts) (all []finding.Finding) {
	if f.node.machine.Simulated == "wine" {
		return nil
	}
	for _, c := range f.node.changeable.value {
		all = append(all, c.problem())
	}
	return all
}

func (c Changeable) problem() finding.Finding {
	use, inherited := "from which SYSTEM runs "+cmp.Or(strings.Join(c.Programs, ", "), "programs"), "(OI)(CI)"
	if c.File {
		use, inherited = "which SYSTEM runs", ""
	}
	args := []string{"exec", "--", "icacls", c.Path, "/inheritance:r", "/grant"}
	for _, right := range []struct{ sid, may string }{{"S-1-5-18", "F"}, {"S-1-5-32-544", "F"},
		{"S-1-5-32-545", "RX"}} {
		args = append(args, "*"+right.sid+":"+inherited+right.may)
	}
	return finding.Finding{
		Severity: finding.Warning,
		What:     fmt.Sprintf("ordinary accounts can change %s, %s", c.Path, use),
		Evidence: "may change it: " + strings.Join(accountNames(c.By), ", "),
		Remedy: "let only administrators change it: `swdt join` does so for its own folders; for any other: " +
			remedy.Command(args...),
	}
}

// accountNames returns the accounts for people: it replaces the abbreviations that SDDL has for
// some accounts of every Windows by the names of these accounts.
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
