package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/kubeletargs"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/smallfile"
	"github.com/swdt-dev/swdt/internal/ui"
)

// folders makes the folders that containerd, kubelet and kubeadm expect, and
// keeps everybody but administrators from those with credentials in them.
type folders struct{ *joining }

// foldersSDDL is for folders with credentials; what is made in them inherits it.
const foldersSDDL = layout.RootSDDL

func (s *folders) Name() string { return stepFolders }

// wanted are all folders, those above before those in them.
func (s *folders) wanted() []string {
	var all []string
	paths := []string{
		containerdBin, s.spec.Containerd.CNI.BinDirectory, s.spec.Containerd.CNI.ConfigDirectory,
		folderOf(s.spec.Containerd.LogFile), v1alpha1.KubernetesFolder,
		folderOf(kubeletargs.LogFile), `C:\var\log\pods`, `C:\var\log\containers`,
		kubeletData + `\pki`, kubernetesConfig + `\pki`, kubernetesConfig + `\manifests`,
		`C:\usr\libexec\kubernetes\kubelet-plugins\volume\exec`, // kubelet would make it
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

// secret are the folders that only administrators may read. Not all of
// kubeletData: containers that run as other users read their volumes there.
func (s *folders) secret() []string { return []string{kubernetesConfig, kubeletData + `\pki`} }

// data are the folders that go with all in them: they only have what a service
// of ours has put there.
func (s *folders) data() []string { return []string{kubernetesConfig, kubeletData} }

func (s *folders) Plan(ctx context.Context, n *node.Node) (plan.Change, error) {
	missing, open, err := s.compare(ctx, n)
	if err != nil {
		return plan.Change{}, err
	}
	var parts []string
	detail := ""
	const listed = 2
	switch made := deepest(missing); {
	case len(made) > listed:
		parts, detail = append(parts, fmt.Sprintf("make %d folders", len(made))), strings.Join(made, ", ")
	case len(made) > 0:
		parts = append(parts, "make "+strings.Join(made, ", "))
	}
	if len(open) > 0 {
		parts = append(parts, "restrict "+strings.Join(open, ", ")+" to Administrators and SYSTEM")
	}
	return plan.Change{Needed: len(parts) > 0, Summary: strings.Join(parts, "; "), Detail: detail}, nil
}

// compare finds the folders that are missing, and those with credentials, there
// or not, that others may read.
func (s *folders) compare(ctx context.Context, n *node.Node) (missing, open []string, err error) {
	for _, path := range s.wanted() {
		info, err := n.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
		switch {
		case errors.Is(err, host.ErrNotExist):
			missing = append(missing, path)
		case err != nil:
			return nil, nil, fmt.Errorf("look at %s: %w", path, err)
		case !info.GetFolder() && !info.GetLink():
			return nil, nil, fmt.Errorf("%s is a file and must be a folder: move it away", path)
		}
	}
	for _, path := range s.secret() {
		if containsFold(missing, path) {
			open = append(open, path)
			continue
		}
		restricted, err := smallfile.Restricted(ctx, n, path)
		if err != nil {
			return nil, nil, err
		}
		if !restricted {
			open = append(open, path)
		}
	}
	return missing, open, nil
}

func (s *folders) Apply(ctx context.Context, n *node.Node, _ ui.Reporter) (plan.Outcome, error) {
	missing, open, err := s.compare(ctx, n)
	if err != nil {
		return plan.Outcome{}, err
	}
	err = update(ctx, n, func(r *record) {
		for _, path := range missing {
			if !r.folder(path) {
				r.Folders = append(r.Folders, folderRecord{Path: path, Data: containsFold(s.data(), path)})
			}
		}
	})
	if err != nil {
		return plan.Outcome{}, err
	}
	for _, path := range missing {
		if _, err := n.Files.MakeFolder(ctx, &agentv1.MakeFolderRequest{Path: path}); err != nil {
			return plan.Outcome{}, fmt.Errorf("make %s: %w", path, err)
		}
	}
	for _, path := range open {
		if err := smallfile.Restrict(ctx, n, path, foldersSDDL); err != nil {
			return plan.Outcome{}, err
		}
	}
	return plan.Outcome{}, nil
}

func (s *folders) PlanUndo(ctx context.Context, n *node.Node) (plan.Change, error) {
	r, err := load(ctx, n)
	if err != nil || len(r.Folders) == 0 {
		return plan.Change{}, err
	}
	var data []string
	for _, f := range r.Folders {
		if f.Data {
			data = append(data, f.Path)
		}
	}
	summary := "remove folders that nobody else uses"
	if len(data) > 0 {
		summary = "remove " + strings.Join(data, ", ") + " with all in them; " + summary
	}
	return plan.Change{Needed: true, Summary: summary}, nil
}

func (s *folders) Undo(ctx context.Context, n *node.Node, r ui.Reporter) (plan.Outcome, error) {
	taken, err := load(ctx, n)
	if err != nil {
		return plan.Outcome{}, err
	}
	var left []string
	var there []folderRecord
	var failed error
	for _, f := range slices.Backward(taken.Folders) {
		if f.Data {
			err := removeTree(ctx, n, f.Path)
			if ctx.Err() != nil || lost(err) {
				return plan.Outcome{}, errors.Join(err, ctx.Err())
			}
			if err != nil { // the others can go all the same
				there, failed = append(there, f), errors.Join(failed, err)
			}
			continue
		}
		empty, err := removeEmpty(ctx, n, f.Path)
		if err != nil {
			return plan.Outcome{}, err
		}
		if !empty {
			there, left = append(there, f), append(left, f.Path)
		}
	}
	if failed != nil { // the next reset goes on
		slices.Reverse(there)
		err := update(ctx, n, func(r *record) { r.Folders = there })
		return plan.Outcome{}, errors.Join(fmt.Errorf("%w; what is in use, or layers of images, which only their owner may remove, are in the way: "+
			"remove it by hand (takeown /r, icacls /grant), then run `swdt reset` again", failed), err)
	}
	outcome := plan.Outcome{}
	if left = deepest(left); len(left) > 0 {
		slices.Sort(left)
		outcome.Message = "kept, since there is something in them: " + strings.Join(left, ", ")
	}
	return outcome, update(ctx, n, func(r *record) { r.Folders = nil })
}

// removeTree removes a folder with all in it; one that is not there is no error.
func removeTree(ctx context.Context, n *node.Node, path string) error {
	_, err := n.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path, Recursive: true})
	if err != nil && !errors.Is(err, host.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// removeEmpty removes a folder that has nothing in it, and says whether it is
// gone.
func removeEmpty(ctx context.Context, n *node.Node, path string) (bool, error) {
	list, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: path})
	switch {
	case errors.Is(err, host.ErrNotExist):
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

// deepest leaves out folders that have another one of the list in them.
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

// folderOf is the folder of a file.
func folderOf(path string) string { return path[:max(strings.LastIndex(path, `\`), 0)] }

// withParents are a folder and those above it, the outermost first, without the
// drive: for C:\a\b they are C:\a and C:\a\b.
func withParents(path string) []string {
	var out []string
	for i, c := range path {
		if c == '\\' && i > len(`C:`) {
			out = append(out, path[:i])
		}
	}
	return append(out, path)
}
