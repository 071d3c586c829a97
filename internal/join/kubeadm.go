package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// kubeadmJoin runs kubeadm to make the machine a node. The bootstrap token is in a file that only
// administrators can read, and that exists only while kubeadm runs.
type kubeadmJoin struct{ *joining }

// Files that kubeadm join, and the kubelet that it starts, leave behind.
const (
	kubeletConf   = kubernetesConfig + `\kubelet.conf`
	bootstrapConf = kubernetesConfig + `\bootstrap-kubelet.conf`
	clusterCA     = kubernetesConfig + `\pki\ca.crt`
	kubeletYAML   = kubeletData + `\config.yaml`
)

// joinFiles returns the files that must not exist when a join begins: kubeadm refuses some of them,
// and kubelet would use the other files as its own.
func joinFiles() []string {
	return []string{
		bootstrapConf, kubeletConf, clusterCA, kubeletYAML, kubeletargs.FlagsFile,
		kubeletData + `\instance-config.yaml`,
	}
}

// clearedIn bounds the cleanup after the work was cancelled.
const clearedIn = 5 * time.Second

func (s *kubeadmJoin) Name() string { return stepJoin }

// state describes how far a join has progressed on the machine.
type state int

const (
	notJoined state = iota
	halfJoined
	unfinished // kubelet has its credentials, but not everything is cleaned up
	joined
	foreign // a join that swdt did not make
)

// howFar returns how far a join has progressed on the machine, and the files of a join that exist
// there. Once kubelet.conf and the files that it needs are complete, kubelet has its own
// credentials and no longer needs a token.
func howFar(ctx context.Context, n *node.Node) (state, []string, error) {
	r, err := load(ctx, n)
	if err != nil {
		return 0, nil, err
	}
	there, err := preflight.Looker{Node: n}.Existing(ctx, append(joinFiles(), layout.JoinConfiguration)...)
	if err != nil {
		return 0, nil, err
	}
	has := func(path string) bool { return slices.Contains(there, path) }
	ours := r.Joining || r.Joined
	if !ours && len(there) > 0 {
		return foreign, there, nil
	}
	complete := false
	if has(kubeletConf) {
		if complete, err = credentials(ctx, n); err != nil {
			return 0, nil, err
		}
	}
	switch {
	case complete && (r.Joining || !r.Joined || has(bootstrapConf) || has(layout.JoinConfiguration)):
		return unfinished, there, nil
	case complete:
		return joined, there, nil
	case ours:
		return halfJoined, there, nil
	}
	return notJoined, nil, nil
}

func (s *kubeadmJoin) Plan(ctx context.Context) (plan.Change, error) {
	found, files, err := howFar(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	if found == joined || found == unfinished {
		if err := s.sameCluster(ctx, s.node); err != nil || found == joined {
			return plan.Change{}, err
		}
	}
	if found == foreign {
		return plan.Change{}, fmt.Errorf("the machine has been joined before, and not by swdt: %s; "+
			"run kubeadm reset on it, or remove them", strings.Join(files, ", "))
	}
	name, err := s.nodeName(ctx, s.node)
	summary := fmt.Sprintf("join %s as %s", s.endpoint(), name)
	switch found {
	case halfJoined:
		summary += ", over the remains of an interrupted join"
	case unfinished:
		summary = "remove the remains of an interrupted join"
	}
	return plan.Change{Needed: true, Summary: summary}, err
}

func (s *kubeadmJoin) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	found, _, err := howFar(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if found != unfinished {
		if err := s.begin(ctx, s.node); err != nil {
			return plan.Outcome{}, err
		}
		// An interrupted join may have started a kubelet, which may have its credentials by
		// now.
		if found, _, err = howFar(ctx, s.node); err != nil {
			return plan.Outcome{}, err
		}
	}
	if found == unfinished {
		return plan.Outcome{}, s.finish(ctx, s.node, r)
	}
	if err := s.prepare(ctx, s.node, r); err != nil {
		return plan.Outcome{}, s.failed(ctx, s.node, stepJoin, kubeletName, err)
	}
	if err := s.withToken(ctx, s.node, r, func(token string) error { return s.kubeadm(ctx, s.node, r, token) }); err != nil {
		return plan.Outcome{}, s.failed(ctx, s.node, stepJoin, kubeletName, err)
	}
	return plan.Outcome{}, s.finish(ctx, s.node, r)
}

// begin records that a join to the cluster begins, and stops a kubelet of an earlier join.
func (s *kubeadmJoin) begin(ctx context.Context, n *node.Node) error {
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return err
	}
	if s.restarted, err = s.clock(ctx, n); err != nil {
		return err
	}
	if err := noteNetworks(ctx, n); err != nil {
		return err
	}
	if err := update(ctx, n, func(r *record) { r.Node, r.Joining = name, true }); err != nil {
		return err
	}
	return stop(ctx, n, kubeletName)
}

// prepare removes the tokens and files of an earlier join, and waits until the Node's name
// is free: kubeadm would refuse these files and the name.
func (s *kubeadmJoin) prepare(ctx context.Context, n *node.Node, r ui.Reporter) error {
	if err := s.sweep(ctx, n); err != nil {
		return err
	}
	if err := s.clear(ctx, n); err != nil {
		return err
	}
	return s.awaitNameFree(ctx, n, r)
}

// nameFreeIn is longer than a cluster needs to notice that a node's kubelet has stopped.
const nameFreeIn = 2 * time.Minute

// awaitNameFree waits until no Node of this name is Ready, since kubeadm refuses the name of
// a Ready Node. If this machine's earlier kubelet has stopped, its Node stays Ready for some
// 40 seconds more. If the Node's lease is renewed during the wait, the Node belongs to
// another machine.
func (s *kubeadmJoin) awaitNameFree(ctx context.Context, n *node.Node, r ui.Reporter) error {
	if s.options.Cluster == nil {
		return nil
	}
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return err
	}
	var first *cluster.Node
	s.newNode = false
	what := fmt.Sprintf("the cluster to notice that %s's kubelet was stopped", name)
	err = waitFor(what, nameFreeIn, r, func(ctx context.Context) error {
		is, err := s.options.Cluster.Node(ctx, name)
		if err != nil {
			return wait.StopIf(ctx.Err() == nil, err)
		}
		if first == nil {
			first, s.newNode = &is, !is.Exists
		}
		switch {
		case !is.Exists || !is.Ready:
			return nil
		case is.LeaseRenewed.After(first.LeaseRenewed):
			return wait.Stop(fmt.Errorf("node %s of the cluster is another machine: "+
				"give this machine another name with join.nodeName, or remove the other machine from the cluster", name))
		}
		return errors.New("it is still Ready")
	}).Wait(ctx)
	if late := (*wait.Error)(nil); errors.As(err, &late) {
		return fmt.Errorf("%w; delete the Node %s", err, name)
	}
	return err
}

// clear removes the files that an earlier join by swdt left.
func (s *kubeadmJoin) clear(ctx context.Context, n *node.Node) error {
	for _, path := range append(joinFiles(), layout.JoinConfiguration) {
		if err := smallfile.Remove(ctx, n, path); err != nil {
			return err
		}
	}
	return s.emptyFolder(ctx, n, kubeletData+`\pki`)
}

// emptyFolder removes everything in a folder.
func (s *kubeadmJoin) emptyFolder(ctx context.Context, n *node.Node, folder string) error {
	list, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: folder})
	if errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look into %s: %w", folder, err)
	}
	for _, entry := range list.GetEntries() {
		if err := removeTree(ctx, n, entry.GetPath()); err != nil {
			return err
		}
	}
	return nil
}

// finish removes the files and the Secrets that held the bootstrap token, and records that
// the machine has joined.
func (s *kubeadmJoin) finish(ctx context.Context, n *node.Node, r ui.Reporter) error {
	for _, path := range []string{layout.JoinConfiguration, bootstrapConf} {
		if err := smallfile.Remove(ctx, n, path); err != nil {
			return err
		}
	}
	if err := s.sweep(ctx, n); err != nil {
		return err
	}
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return err
	}
	r.Debug("%s has its own credentials", name)
	if err := s.noteConfiguration(ctx, n); err != nil {
		return err
	}
	return update(ctx, n, func(r *record) { r.Node, r.Joining, r.Joined = name, false, true })
}

// sweep deletes the tokens that an interrupted run left for this node.
func (s *kubeadmJoin) sweep(ctx context.Context, n *node.Node) error {
	if s.options.Cluster == nil {
		return nil
	}
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return err
	}
	_, err = s.options.Cluster.SweepTokens(ctx, name)
	return err
}

// endpoint returns the API server's host:port as the node reaches it.
func (j *joining) endpoint() string {
	endpoint := j.spec.Join.ControlPlaneEndpoint
	if endpoint == "" && j.options.Cluster != nil {
		return j.options.Cluster.Endpoint()
	}
	return withPort(endpoint)
}

// programPath is the PATH on which kubeadm finds kubelet, xcopy and powershell: the
// agent's own PATH may be older than the machine's.
const programPath = v1alpha1.KubernetesFolder + `;` + containerdBin +
	`;C:\Windows\System32;C:\Windows;C:\Windows\System32\Wbem;C:\Windows\System32\WindowsPowerShell\v1.0`
