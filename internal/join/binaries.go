package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// binaries installs programs on the machine as `swdt push` does: it replaces, in one
// transaction, all programs that differ. The transaction is rolled back if a service does not
// become healthy with its new binary.
type binaries struct {
	*joining
	name   string
	folder string // on the machine
	wishes []artifact.Wish
	// needsRestart maps a program to the service that must be restarted. It has only the programs
	// whose service has another name than the program.
	needsRestart map[string]string // by file name
	// exchanged is set if config.toml is replaced along with containerd.
	exchanged bool
	// beside is the step whose programs the node inspects at the same time as those of this step; nil: none.
	beside *binaries
	// inspected is the result of that inspection, until Plan takes it.
	inspected *inspection
}

// inspection is a list of what a push would change, or the reason why that is unknown.
type inspection struct {
	result push.NodeResult
	err    error
}

func containerdFiles(j *joining) *binaries {
	c := j.spec.Containerd
	wishes := []artifact.Wish{{Component: artifact.Containerd, Version: c.Version, Source: c.Source, SHA256: c.SHA256,
		Field: "spec.kubernetes.containerd.source"}}
	if c.CrictlVersion != "" {
		wishes = append(wishes, artifact.Wish{Component: artifact.Crictl, Version: c.CrictlVersion})
	}
	return &binaries{joining: j, name: stepContainerdFiles, folder: containerdBin, wishes: wishes}
}

func kubernetesFiles(j *joining) *binaries {
	k := j.spec.Kubelet
	wish := func(component artifact.Component, source, field string) artifact.Wish {
		return artifact.Wish{Component: component, Version: j.spec.Version, Source: source,
			Field: "spec.kubernetes." + field}
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

func (s *binaries) Plan(ctx context.Context) (plan.Change, error) {
	result, err := s.inspect(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	if s.name == stepKubernetesFiles {
		if err := refuseUpgrade(ctx, s.node, result); err != nil {
			return plan.Change{}, err
		}
	}
	if s.name == stepContainerdFiles {
		if s.exchanges, err = exchangesConfiguration(ctx, s.node, result); err != nil {
			return plan.Change{}, err
		}
	}
	var parts, installed []string
	for _, c := range result.Components {
		switch file := c.Destination[len(folderOf(c.Destination))+1:]; c.Action {
		case push.ActionCreated:
			installed = append(installed, strings.TrimSpace(file+" "+c.Version.Wanted))
		case push.ActionReplaced:
			part := "replace " + file
			if c.Version.Before != "" && c.Version.Wanted != "" {
				part += " " + c.Version.Before + " → " + c.Version.Wanted
			}
			if c.Name == containerdName && s.exchanges {
				part += ", and config.toml if the new containerd generates a different one"
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

func (s *binaries) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	found, err := s.push(ctx, s.node, true, r)
	if err != nil {
		return plan.Outcome{}, err
	}
	if s.restarted, err = s.clock(ctx, s.node); err != nil {
		return plan.Outcome{}, err
	}
	err = update(ctx, s.node, func(r *record) {
		for _, c := range found.Components {
			s.note(r, c)
		}
	})
	if err != nil {
		return plan.Outcome{}, err
	}
	s.exchanges = false
	done, err := s.push(ctx, s.node, false, r)
	if err != nil || !replacesContainerd(done) {
		return plan.Outcome{}, err
	}
	outcome := plan.Outcome{}
	if s.exchanged {
		outcome.Message = "config.toml is from the new containerd"
	}
	// The push has restarted containerd, so a restart that was pending is done.
	return outcome, update(ctx, s.node, func(r *record) { r.dropRestart(containerdName) })
}

// note records a program before the push creates or replaces it.
func (s *binaries) note(r *record, c *push.ComponentResult) {
	switch c.Action {
	case push.ActionCreated:
		r.addFile(fileRecord{Path: c.Destination, Step: s.name})
	case push.ActionReplaced:
		r.addFile(fileRecord{Path: c.Destination, Step: s.name, Existed: true})
	default:
		return
	}
	file := strings.ToLower(c.Destination[len(folderOf(c.Destination))+1:])
	if service := s.needsRestart[file]; service != "" && r.service(service) != nil {
		r.addRestart(service)
	}
}

// inspect returns what a push would change. An inspection runs programs on the node to learn their
// versions, which takes some hundred milliseconds, so the programs of the step beside are inspected at
// the same time.
func (s *binaries) inspect(ctx context.Context, n *node.Node) (push.NodeResult, error) {
	if done := s.inspected; done != nil {
		s.inspected = nil
		return done.result, done.err
	}
	doc, err := s.document(ctx, n)
	if err != nil {
		return push.NodeResult{}, err
	}
	var other sync.WaitGroup
	if s.beside != nil {
		besides, err := s.beside.document(ctx, n)
		if err != nil {
			return push.NodeResult{}, err
		}
		other.Go(func() {
			result, err := s.beside.pushDocument(ctx, n, besides, true, s.options.Reporter)
			s.beside.inspected = &inspection{result, err}
		})
	}
	defer other.Wait()
	return s.pushDocument(ctx, n, doc, true, s.options.Reporter)
}

// push uses package push to compare the programs with those on the node and, unless dryRun is
// set, to replace them.
func (s *binaries) push(ctx context.Context, n *node.Node, dryRun bool, r ui.Reporter) (push.NodeResult, error) {
	doc, err := s.document(ctx, n)
	if err != nil {
		return push.NodeResult{}, err
	}
	return s.pushDocument(ctx, n, doc, dryRun, r)
}

func (s *binaries) pushDocument(ctx context.Context, n *node.Node, doc config.Document, dryRun bool, r ui.Reporter) (
	push.NodeResult, error) {
	options := push.Options{Sources: s.options.Sources, Depot: s.options.Depot, Holder: s.options.Holder,
		DryRun: dryRun, Locked: true, Registers: true,
		Companions: func(ctx context.Context, staged map[string]string) ([]push.Companion, error) {
			return s.newConfiguration(ctx, n, r, staged)
		}}
	return push.Push(ctx, n, doc, options, r)
}

// document returns a node file for package push, with the programs as components.
func (s *binaries) document(ctx context.Context, n *node.Node) (config.Document, error) {
	facts, err := s.machine(ctx, n)
	if err != nil {
		return config.Document{}, err
	}
	var provisioners []v1alpha1.Provisioner
	wishes := s.wishes
	if s.name == stepKubernetesFiles && s.choice.Form == cluster.KubeProxyService {
		wishes = append(slices.Clone(wishes), s.kubeProxyWish())
	}
	for _, wish := range wishes {
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
				p.Version = set.Version // containerd and kubelet report their version with --version
			}
			provisioners = append(provisioners, p)
		}
	}
	doc := config.Document{Node: v1alpha1.Node{Metadata: s.doc.Node.Metadata}, File: config.Stdin}
	doc.Node.Spec.Kubernetes.Provisioners = provisioners
	v1alpha1.SetDefaults(&doc.Node)
	return doc, nil
}

// resolve finds the files of a component, once for each run.
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

func (s *binaries) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	return filesChange(r.filesOf(s.name)), nil
}

// Undo removes the programs that did not exist before the join, the previous programs that the node
// kept for a rollback, and the remains of interrupted pushes.
func (s *binaries) Undo(ctx context.Context, reporter ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	// An empty push finishes a transaction that an interrupted run left.
	idle := config.Document{Node: v1alpha1.Node{Metadata: s.doc.Node.Metadata}}
	if _, err := push.Push(ctx, s.node, idle, push.Options{Sources: s.options.Sources, Holder: s.options.Holder,
		Locked: true}, reporter); err != nil {
		return plan.Outcome{}, err
	}
	for _, file := range r.filesOf(s.name) {
		if err := removeProgram(ctx, s.node, file); err != nil {
			return plan.Outcome{}, err
		}
	}
	return plan.Outcome{}, update(ctx, s.node, func(r *record) { r.dropFiles(s.name) })
}

func removeProgram(ctx context.Context, n *node.Node, file fileRecord) error {
	list, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: folderOf(file.Path)})
	if errors.Is(err, fault.ErrNotExist) {
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
		if err := removeRunning(ctx, n, path); err != nil {
			return err
		}
	}
	return nil
}

// removeRunning removes a file that a process may still be running. It waits up to 5
// seconds for the process to end, since a stopped service keeps its process for a moment.
// Then it ends the processes that still run the file: a pod's shim, or a command that an
// interrupted join has left.
func removeRunning(ctx context.Context, n *node.Node, path string) error {
	err := removeUnlessBusy(ctx, n, path)
	if !fault.IsHeld(err) {
		return err
	}
	if err := endAllOf(ctx, n, path); err != nil {
		return err
	}
	if err = removeUnlessBusy(ctx, n, path); fault.IsHeld(err) {
		return fmt.Errorf("%w: is it still running?", err)
	}
	return err
}

// removeUnlessBusy removes a file as soon as no process runs it. It gives up after 5
// seconds.
func removeUnlessBusy(ctx context.Context, n *node.Node, path string) error {
	err := wait.Condition{
		Name:     "its processes to end",
		Interval: pollInterval,
		Limit:    5 * time.Second,
		// Look ignores its own context, so that the limit does not interrupt a removal.
		Look: func(context.Context) error {
			_, err := n.Files.Remove(ctx, &agentv1.RemoveRequest{Path: path})
			if err == nil || errors.Is(err, fault.ErrNotExist) {
				return nil
			}
			return wait.StopIf(!fault.IsHeld(err), err)
		},
	}.Wait(ctx)
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// endAllOf ends every process that runs an executable.
func endAllOf(ctx context.Context, n *node.Node, path string) error {
	list, err := n.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	if err != nil {
		return fmt.Errorf("look for what runs %s: %w", path, err)
	}
	for _, p := range list.GetProcesses() {
		if !strings.EqualFold(p.GetImage(), path) {
			continue
		}
		if _, err := n.Processes.Kill(ctx, &agentv1.KillProcessRequest{Pid: p.GetPid()}); err != nil &&
			!errors.Is(err, fault.ErrNotExist) {
			return fmt.Errorf("end process %d, which runs %s: %w", p.GetPid(), path, err)
		}
	}
	return nil
}

// filesChange returns the change that an undo makes to files.
func filesChange(files []fileRecord) plan.Change {
	var parts, removed []string
	for _, f := range files {
		switch {
		case f.Before != "":
			parts = append(parts, "restore the previous "+f.Path)
		case f.Existed:
			parts = append(parts, "keep "+f.Path+", which was there before, as it is now")
		case len(removed) > 0 && folderOf(f.Path) == folderOf(files[0].Path): // the folder is named already
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
