package join

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/artifact"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/deploy"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// binaries brings programs to the machine as `swdt kubernetes` does: all that
// differ in one transaction, which is undone where a service does not get well
// with its new binary.
type binaries struct {
	*joining
	name   string
	folder string // on the machine
	wishes []artifact.Wish
	// needsRestart are the services that run one of the programs without being
	// called like it.
	needsRestart map[string]string // by file name
}

func containerdFiles(j *joining) *binaries {
	c := j.spec.Containerd
	return &binaries{joining: j, name: stepContainerdFiles, folder: containerdBin, wishes: []artifact.Wish{{
		Component: artifact.Containerd, Version: c.Version, Source: c.Source, SHA256: c.SHA256, Field: "spec.kubernetes.containerd.source",
	}}}
}

func kubernetesFiles(j *joining) *binaries {
	k := j.spec.Kubelet
	wish := func(component artifact.Component, source, field string) artifact.Wish {
		return artifact.Wish{Component: component, Version: j.spec.Version, Source: source, Field: "spec.kubernetes." + field}
	}
	return &binaries{joining: j, name: stepKubernetesFiles, folder: v1alpha1.KubernetesFolder,
		wishes: []artifact.Wish{
			wish(artifact.Kubelet, k.Source, "kubelet.source"),
			wish(artifact.Kubeadm, k.KubeadmSource, "kubelet.kubeadmSource"),
			wish(artifact.LogRunner, k.LogRunnerSource, "kubelet.logRunnerSource"),
		},
		needsRestart: map[string]string{"kube-log-runner.exe": kubeletName},
	}
}

func (s *binaries) Name() string { return s.name }

func (s *binaries) Plan(ctx context.Context, n *node.Node) (plan.Change, error) {
	result, err := s.push(ctx, n, true, s.options.Reporter)
	if err != nil {
		return plan.Change{}, err
	}
	var parts, installed []string
	for _, c := range result.Components {
		switch file := c.Destination[len(folderOf(c.Destination))+1:]; c.Action {
		case deploy.ActionCreated:
			installed = append(installed, strings.TrimSpace(file+" "+c.Version.Wanted))
		case deploy.ActionReplaced:
			part := "replace " + file
			if c.Version.Before != "" && c.Version.Wanted != "" {
				part += " " + c.Version.Before + " → " + c.Version.Wanted
			}
			parts = append(parts, part)
		}
	}
	if len(installed) > 0 {
		parts = append(parts, "install "+strings.Join(installed, ", "))
	}
	if len(result.Recovered) > 0 && len(parts) == 0 {
		parts = append(parts, "finish what an interrupted run began")
	}
	return plan.Change{Needed: len(parts) > 0, Summary: strings.Join(parts, ", ")}, nil
}

func (s *binaries) Apply(ctx context.Context, n *node.Node, r ui.Reporter) (plan.Outcome, error) {
	found, err := s.push(ctx, n, true, r)
	if err != nil {
		return plan.Outcome{}, err
	}
	if s.restarted, err = s.clock(ctx, n); err != nil {
		return plan.Outcome{}, err
	}
	err = update(ctx, n, func(r *record) {
		for _, c := range found.Components {
			s.note(r, c)
		}
	})
	if err != nil {
		return plan.Outcome{}, err
	}
	push := func() error {
		_, err := s.push(ctx, n, false, r)
		return err
	}
	switch {
	case older(found):
		return plan.Outcome{}, s.stepBack(ctx, n, push)
	case replacesContainerd(found):
		return plan.Outcome{}, s.configureAhead(ctx, n, r, push)
	}
	return plan.Outcome{}, push()
}

// note writes a program down before it is there.
func (s *binaries) note(r *record, c *deploy.ComponentResult) {
	switch c.Action {
	case deploy.ActionCreated:
		r.addFile(fileRecord{Path: c.Destination, Step: s.name})
	case deploy.ActionReplaced:
		r.addFile(fileRecord{Path: c.Destination, Step: s.name, Existed: true})
	default:
		return
	}
	file := strings.ToLower(c.Destination[len(folderOf(c.Destination))+1:])
	if service := s.needsRestart[file]; service != "" && r.service(service) != nil {
		r.addRestart(service)
	}
}

// push has package deploy compare, or do, the work.
func (s *binaries) push(ctx context.Context, n *node.Node, dryRun bool, r ui.Reporter) (deploy.NodeResult, error) {
	doc, err := s.document(ctx, n)
	if err != nil {
		return deploy.NodeResult{}, err
	}
	options := deploy.Options{Sources: s.options.Sources, Depot: s.options.Depot, Holder: s.options.Holder, DryRun: dryRun, Locked: true}
	return deploy.Push(ctx, n, doc, options, r)
}

// document is a node file for package deploy, with the programs at hand.
func (s *binaries) document(ctx context.Context, n *node.Node) (config.Document, error) {
	facts, err := s.machine(ctx, n)
	if err != nil {
		return config.Document{}, err
	}
	var provisioners []v1alpha1.Provisioner
	for _, wish := range s.wishes {
		wish.Mirror, wish.Arch = s.options.Mirror, facts.GetArchitecture()
		set, err := s.resolve(ctx, wish)
		if err != nil {
			return config.Document{}, err
		}
		for i, file := range set.Files {
			p := v1alpha1.Provisioner{
				Name: strings.TrimSuffix(file.Name, ".exe"), SourceURL: file.Path, SHA256: file.SHA256,
				Destination: s.folder + `\` + file.Name,
			}
			if i == 0 && (wish.Component == artifact.Containerd || wish.Component == artifact.Kubelet) {
				p.Version = set.Version // these report theirs by --version
			}
			provisioners = append(provisioners, p)
		}
	}
	doc := config.Document{Node: v1alpha1.Node{Metadata: s.doc.Node.Metadata}, File: config.Stdin}
	doc.Node.Spec.Kubernetes.Provisioners = provisioners
	v1alpha1.SetDefaults(&doc.Node)
	return doc, nil
}

// resolve gets a component, once a run.
func (s *binaries) resolve(ctx context.Context, wish artifact.Wish) (artifact.Set, error) {
	if set, ok := s.sets[wish.Component]; ok {
		return set, nil
	}
	if wish.Source != "" {
		wish.Source = s.doc.Resolve(wish.Source)
	}
	set, err := s.options.Artifacts.Resolve(ctx, wish, s.options.Reporter)
	if err != nil {
		return artifact.Set{}, err
	}
	s.sets[wish.Component] = set
	return set, nil
}

func (s *binaries) PlanUndo(ctx context.Context, n *node.Node) (plan.Change, error) {
	r, err := load(ctx, n)
	if err != nil {
		return plan.Change{}, err
	}
	return filesChange(r.filesOf(s.name)), nil
}

// Undo removes the programs, the previous ones that were kept of them, and what
// interrupted pushes left.
func (s *binaries) Undo(ctx context.Context, n *node.Node, reporter ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, n)
	if err != nil {
		return plan.Outcome{}, err
	}
	// A push of nothing finishes a transaction that an interrupted run left.
	idle := config.Document{Node: v1alpha1.Node{Metadata: s.doc.Node.Metadata}}
	if _, err := deploy.Push(ctx, n, idle, deploy.Options{Sources: s.options.Sources, Holder: s.options.Holder, Locked: true}, reporter); err != nil {
		return plan.Outcome{}, err
	}
	for _, file := range r.filesOf(s.name) {
		if err := removeProgram(ctx, n, file); err != nil {
			return plan.Outcome{}, err
		}
	}
	return plan.Outcome{}, update(ctx, n, func(r *record) { r.dropFiles(s.name) })
}

func removeProgram(ctx context.Context, n *node.Node, file fileRecord) error {
	list, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: folderOf(file.Path)})
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look into %s: %w", folderOf(file.Path), err)
	}
	for _, entry := range list.GetEntries() {
		path := entry.GetPath()
		ours := strings.EqualFold(path, file.Path) && !file.Existed
		kept := strings.EqualFold(path, layout.Previous(file.Path)) || layout.IsLeftover(file.Path, path)
		if !ours && !kept {
			continue
		}
		if err := removePatiently(ctx, n, path); err != nil {
			return err
		}
	}
	return nil
}

// removePatiently gives a process that runs the file a while to end: a service
// that has stopped has one for some moments more. What then still runs it is
// ended: a pod's shim, or a command that an interrupted join has left.
func removePatiently(ctx context.Context, n *node.Node, path string) error {
	err := removeUnlessBusy(ctx, n, path)
	if !isBusy(err) {
		return err
	}
	if err := endAllOf(ctx, n, path); err != nil {
		return err
	}
	if err = removeUnlessBusy(ctx, n, path); isBusy(err) {
		return fmt.Errorf("%w: is it still running?", err)
	}
	return err
}

// removeUnlessBusy removes a file as soon as nothing runs it, or gives up on that
// after a while.
func removeUnlessBusy(ctx context.Context, n *node.Node, path string) error {
	waiting, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for {
		_, err := n.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path})
		if err == nil || errors.Is(err, host.ErrNotExist) {
			return nil
		}
		if !isBusy(err) || wait.For(waiting, lookAgain) != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
}

func isBusy(err error) bool {
	return errors.Is(err, host.ErrPermission) || errors.Is(err, host.ErrInUse)
}

// endAllOf ends every process of an executable.
func endAllOf(ctx context.Context, n *node.Node, path string) error {
	list, err := n.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	if err != nil {
		return fmt.Errorf("look for what runs %s: %w", path, err)
	}
	for _, p := range list.GetProcesses() {
		if !strings.EqualFold(p.GetImage(), path) {
			continue
		}
		if _, err := n.Processes.Kill(ctx, &agentv1.KillProcessRequest{Pid: p.GetPid()}); err != nil && !errors.Is(err, host.ErrNotExist) {
			return fmt.Errorf("end process %d, which runs %s: %w", p.GetPid(), path, err)
		}
	}
	return nil
}

// filesChange says what becomes of files when they are taken back.
func filesChange(files []fileRecord) plan.Change {
	var parts, removed []string
	for _, f := range files {
		switch {
		case f.Before != "":
			parts = append(parts, "put the "+f.Path+" of before back")
		case f.Existed:
			parts = append(parts, "keep "+f.Path+", which stood there before, as it is now")
		case len(removed) > 0 && folderOf(f.Path) == folderOf(files[0].Path): // all are of one folder
			removed = append(removed, f.Path[len(folderOf(f.Path))+1:])
		default:
			removed = append(removed, f.Path)
		}
	}
	if len(removed) > 0 {
		parts = append([]string{"remove " + strings.Join(removed, ", ")}, parts...)
	}
	return plan.Change{Needed: len(files) > 0, Summary: strings.Join(parts, ", ")}
}
