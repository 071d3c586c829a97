package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// folders makes the folders that containerd, kubelet and kubeadm expect. Only administrators
// can access the folders that hold credentials. No ordinary account can change the folders
// that hold programs which SYSTEM runs, or the configuration of such programs.
type folders struct{ *joining }

// foldersSDDL is the access list of folders with credentials. New files in these folders inherit
// that list.
const foldersSDDL = layout.RootSDDL

func (s *folders) Name() string { return stepFolders }

// wanted returns all folders, each before its subfolders.
func (s *folders) wanted() []string {
	var all []string
	paths := []string{
		containerdBin, s.spec.Containerd.CNI.BinDirectory, s.spec.Containerd.CNI.ConfigDirectory,
		folderOf(s.spec.Containerd.LogFile), v1alpha1.KubernetesFolder,
		folderOf(kubeletargs.LogFile), `C:\var\log\pods`, `C:\var\log\containers`,
		kubeletData + `\pki`, kubernetesConfig + `\pki`, kubernetesConfig + `\manifests`,
		// the step creates this folder, since otherwise kubelet creates it
		`C:\usr\libexec\kubernetes\kubelet-plugins\volume\exec`,
	}
	if len(s.spec.Kubelet.ConfigPatch) > 0 {
		paths = append(paths, kubeletargs.ConfigFolder)
	}
	for _, path := range paths {
		for _, folder := range withParents(path) {
			if !containsFold(all, folder) {
				all = append(all, folder)
			}
		}
	}
	return all
}

// secret returns the folders that only administrators may read. kubeletData itself is not
// among them: containers that run as other users read their volumes there.
func (s *folders) secret() []string { return []string{kubernetesConfig, kubeletData + `\pki`} }

// data returns the folders that a reset removes with their content, since only swdt's
// services have written into them.
func (s *folders) data() []string { return []string{kubernetesConfig, kubeletData} }

// programs returns the folders in which ordinary accounts must not change anything: they contain
// programs that SYSTEM runs, or the configuration of such programs.
func (s *folders) programs() []string {
	return []string{
		v1alpha1.KubernetesFolder, folderOf(containerdBin), s.spec.Containerd.CNI.BinDirectory,
		s.spec.Containerd.CNI.ConfigDirectory,
		folderOf(s.spec.Containerd.LogFile), `C:\var\log`, `C:\usr\libexec\kubernetes`, kubeletargs.ConfigFolder,
	}
}

// security returns the access list with which swdt makes or restricts the folder.
func (s *folders) security(path string) string {
	inside := func(folder string) bool {
		return strings.HasPrefix(strings.ToLower(path)+`\`, strings.ToLower(folder)+`\`)
	}
	switch {
	case slices.ContainsFunc(s.secret(), inside):
		return foldersSDDL
	case slices.ContainsFunc(s.programs(), inside):
		return access.Programs
	}
	return access.Shared
}

func (s *folders) Plan(ctx context.Context) (plan.Change, error) {
	f, err := s.compare(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	var parts []string
	detail := ""
	const listed = 2
	switch made := deepest(f.missing); {
	case len(made) > listed:
		parts, detail = append(parts, fmt.Sprintf("make %d folders", len(made))), strings.Join(made, ", ")
	case len(made) > 0:
		parts = append(parts, "make "+strings.Join(made, ", "))
	}
	if len(f.readable) > 0 {
		parts = append(parts, "restrict "+strings.Join(f.readable, ", ")+" to Administrators and SYSTEM")
	}
	if len(f.changeable) > 0 {
		parts = append(parts, "let only Administrators and SYSTEM change "+strings.Join(f.changeable, ", "))
	}
	return plan.Change{Needed: len(parts) > 0, Summary: strings.Join(parts, "; "), Detail: detail}, nil
}

// folderDifferences are the folders that differ from the wanted state.
type folderDifferences struct {
	missing []string
	// readable are folders with credentials that other accounts can read, or folders that are
	// missing and must be restricted when they are made.
	readable   []string
	changeable []string // existing folders that ordinary accounts can change
}

// compare looks at all folders at the same time: one after the other, they would take longer than all
// other comparisons of a join.
func (s *folders) compare(ctx context.Context, n *node.Node) (f folderDifferences, err error) {
	wanted, secret := s.wanted(), s.secret()
	seen, restricted := make([]folderState, len(wanted)), make([]bool, len(secret))
	accessLists, err := s.accessLists(ctx, n)
	if err != nil {
		return f, err
	}
	group, all := errgroup.WithContext(ctx)
	for i, path := range wanted {
		group.Go(func() (err error) {
			seen[i], err = lookAtFolder(all, n, path, accessLists)
			return err
		})
	}
	for i, path := range secret {
		group.Go(func() (err error) {
			restricted[i], err = smallfile.Restricted(all, n, path)
			if errors.Is(err, fault.ErrNotExist) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return f, err
	}
	for i, path := range wanted {
		switch {
		case !seen[i].exists:
			f.missing = append(f.missing, path)
		case seen[i].changeable && !containsFold(secret, path):
			f.changeable = append(f.changeable, path)
		}
	}
	for i, path := range secret {
		if !restricted[i] {
			f.readable = append(f.readable, path)
		}
	}
	return f, nil
}

// folderState is the present state of a folder.
type folderState struct{ exists, changeable bool }

func lookAtFolder(ctx context.Context, n *node.Node, path string, accessLists bool) (folderState, error) {
	info, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
	switch {
	case errors.Is(err, fault.ErrNotExist):
		return folderState{}, nil
	case err != nil:
		return folderState{}, fmt.Errorf("look at %s: %w", path, err)
	case !info.GetFolder() && !info.GetLink():
		return folderState{}, fmt.Errorf("%s is a file and must be a folder: move it away", path)
	case !accessLists:
		return folderState{exists: true}, nil
	}
	by, err := changers(ctx, n, path)
	return folderState{exists: true, changeable: len(by) > 0}, err
}

// accessLists reports whether the machine keeps access lists. Wine does not: it derives an access list
// from the mode of the Linux file.
func (j *joining) accessLists(ctx context.Context, n *node.Node) (bool, error) {
	facts, err := j.machine(ctx, n)
	return facts.GetSimulated() != agentv1.Simulation_SIMULATION_WINE, err
}

// changers returns the ordinary accounts that may change a file, or the content of a folder.
func changers(ctx context.Context, n *node.Node, path string) ([]string, error) {
	acl, err := n.Files.GetACL(ctx, &agentv1.GetACLRequest{Path: path})
	if err != nil {
		return nil, fmt.Errorf("read the access list of %s: %w", path, err)
	}
	return access.OrdinaryChangers(acl.GetSddl()), nil
}

func (s *folders) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	f, err := s.compare(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	err = update(ctx, s.node, func(r *record) {
		for _, path := range f.missing {
			if !r.folder(path) {
				r.Folders = append(r.Folders, folderRecord{Path: path, Data: containsFold(s.data(), path)})
			}
		}
	})
	if err != nil {
		return plan.Outcome{}, err
	}
	for _, path := range f.changeable {
		if err := s.protect(ctx, s.node, path); err != nil {
			return plan.Outcome{}, err
		}
	}
	for _, path := range f.missing {
		if _, err := s.node.Files.MakeFolder(ctx, &agentv1.MakeFolderRequest{Path: path,
			Sddl: s.security(path)}); err != nil {
			return plan.Outcome{}, fmt.Errorf("make %s: %w", path, err)
		}
	}
	for _, path := range f.readable {
		if err := smallfile.Restrict(ctx, s.node, path, foldersSDDL); err != nil {
			return plan.Outcome{}, err
		}
	}
	return plan.Outcome{}, nil
}

// protect prevents ordinary accounts from changing an existing folder. It returns an error if an
// ordinary account owns the folder, since handles that were opened earlier keep their rights. It
// also returns an error if the folder holds programs or credentials, and an ordinary account may
// change something in the folder.
func (s *folders) protect(ctx context.Context, n *node.Node, path string) error {
	acl, err := n.Files.GetACL(ctx, &agentv1.GetACLRequest{Path: path})
	if err != nil {
		return fmt.Errorf("read the access list of %s: %w", path, err)
	}
	list, err := access.Parse(acl.GetSddl())
	if err == nil && len(access.OrdinaryChangers("O:"+list.Owner+"D:P")) > 0 {
		return fmt.Errorf("%s belongs to the ordinary account %s: move it away, so that `swdt join` makes it",
			path, list.Owner)
	}
	if _, err := n.Files.SetACL(ctx, &agentv1.SetACLRequest{Path: path, Sddl: s.security(path)}); err != nil {
		return fmt.Errorf("let only administrators change %s: %w", path, err)
	}
	if s.security(path) == access.Shared {
		return nil
	}
	return nothingPlanted(ctx, n, path)
}

// nothingPlanted returns an error for a folder that contains something which an ordinary
// account may change.
func nothingPlanted(ctx context.Context, n *node.Node, path string) error {
	entries, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: path})
	if err != nil {
		return fmt.Errorf("look into %s: %w", path, err)
	}
	for _, entry := range entries.GetEntries() {
		by, err := changers(ctx, n, entry.GetPath())
		if err != nil {
			return err
		}
		if len(by) > 0 {
			return fmt.Errorf("the ordinary account %s can change %s, and SYSTEM runs what is in this folder: look "+
				"at it, then move it away",
				strings.Join(by, ", "), entry.GetPath())
		}
	}
	return nil
}

func (s *folders) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil || len(r.Folders) == 0 {
		return plan.Change{}, err
	}
	var data []string
	for _, f := range r.Folders {
		if f.Data {
			data = append(data, f.Path)
		}
	}
	summary := "remove folders that nothing else uses"
	if len(data) > 0 {
		summary = "remove " + strings.Join(data, ", ") + " with all in them; " + summary
	}
	return plan.Change{Needed: true, Summary: summary}, nil
}

func (s *folders) Undo(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	taken, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	var left []string
	var there []folderRecord
	var failed error
	for _, f := range slices.Backward(taken.Folders) {
		if f.Data {
			err := removeTree(ctx, s.node, f.Path)
			if ctx.Err() != nil || lost(err) {
				return plan.Outcome{}, errors.Join(err, ctx.Err())
			}
			if err != nil { // this failure does not prevent the removal of the other folders
				there, failed = append(there, f), errors.Join(failed, err)
			}
			continue
		}
		empty, err := removeEmpty(ctx, s.node, f.Path)
		if err != nil {
			return plan.Outcome{}, err
		}
		if !empty {
			there, left = append(there, f), append(left, f.Path)
		}
	}
	if failed != nil { // the next reset tries to remove the remaining folders again
		slices.Reverse(there)
		err := update(ctx, s.node, func(r *record) { r.Folders = there })
		return plan.Outcome{},
			errors.Join(fmt.Errorf("%w; a program may still use files there, or the folder has image layers, which "+
				"only their owner may remove: "+
				"remove the folder by hand (takeown /r, icacls /grant), then run `swdt reset` again", failed), err)
	}
	left = deepest(left)
	slices.Sort(left)
	return plan.Outcome{Message: s.reset.keeps("it is not empty", left...)},
		update(ctx, s.node, func(r *record) { r.Folders = nil })
}

// removeTree removes a folder with everything in it; a missing folder is not an error.
func removeTree(ctx context.Context, n *node.Node, path string) error {
	_, err := n.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path, Recursive: true})
	if err != nil && !errors.Is(err, fault.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// removeEmpty removes a folder if it is empty, and reports whether the folder no longer
// exists.
func removeEmpty(ctx context.Context, n *node.Node, path string) (bool, error) {
	list, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: path})
	switch {
	case errors.Is(err, fault.ErrNotExist):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look into %s: %w", path, err)
	case len(list.GetEntries()) > 0:
		return false, nil
	}
	if _, err := n.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path}); err != nil {
		return false, fmt.Errorf("remove %s: %w", path, err)
	}
	return true, nil
}

// deepest returns the folders of the list that contain no other folder of the list.
func deepest(paths []string) []string {
	var out []string
	for _, path := range paths {
		above := func(other string) bool {
			return strings.HasPrefix(strings.ToLower(other), strings.ToLower(path)+`\`)
		}
		if !slices.ContainsFunc(paths, above) {
			out = append(out, path)
		}
	}
	return out
}

// folderOf returns the folder of a file.
func folderOf(path string) string { return path[:max(strings.LastIndex(path, `\`), 0)] }

// withParents returns a folder and its parents, the outermost first, without the drive:
// C:\a and C:\a\b for C:\a\b.
func withParents(path string) []string {
	var out []string
	for i, c := range path {
		if c == '\\' && i > len(`C:`) {
			out = append(out, path[:i])
		}
	}
	return append(out, path)
}
