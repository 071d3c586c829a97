package join

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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

// kubeadmJoin has kubeadm make the machine a node. Its bootstrap token lives in
// a file that only administrators read, for as long as kubeadm runs.
type kubeadmJoin struct{ *joining }

// Files that kubeadm join and the kubelet it starts leave.
const (
	kubeletConf   = kubernetesConfig + `\kubelet.conf`
	bootstrapConf = kubernetesConfig + `\bootstrap-kubelet.conf`
	clusterCA     = kubernetesConfig + `\pki\ca.crt`
	kubeletYAML   = kubeletData + `\config.yaml`
)

// joinFiles are those that a join begins without: kubeadm refuses some, and
// kubelet would take the others for its own.
func joinFiles() []string {
	return []string{
		bootstrapConf, kubeletConf, clusterCA, kubeletYAML, kubeletargs.FlagsFile,
		kubeletData + `\instance-config.yaml`,
	}
}

// clearedIn bounds what is still cleared away when the work was cancelled.
const clearedIn = 5 * time.Second

func (s *kubeadmJoin) Name() string { return stepJoin }

// state is how far a join has come on the machine.
type state int

const (
	notJoined state = iota
	halfJoined
	unfinished // kubelet has its credentials, but not all is cleared away
	joined
	foreign // somebody else's join
)

// howFar a join has come on the machine, and its files that are there. Kubelet has its own credentials when
// kubelet.conf is there, and needs no token from then on.
func howFar(ctx context.Context, n *node.Node) (state, []string, error) {
	r, err := load(ctx, n)
	if err != nil {
		return 0, nil, err
	}
	var there []string
	has := map[string]bool{}
	for _, path := range append(joinFiles(), layout.JoinConfiguration) {
		exists, err := smallfile.Exists(ctx, n, path)
		if err != nil {
			return 0, nil, err
		}
		if exists {
			there, has[path] = append(there, path), true
		}
	}
	ours := r.Joining || r.Joined
	if !ours && len(there) > 0 {
		return foreign, there, nil
	}
	complete := false
	if has[kubeletConf] {
		if complete, err = credentials(ctx, n); err != nil {
			return 0, nil, err
		}
	}
	switch {
	case complete && (r.Joining || !r.Joined || has[bootstrapConf] || has[layout.JoinConfiguration]):
		return unfinished, there, nil
	case complete:
		return joined, there, nil
	case ours:
		return halfJoined, there, nil
	}
	return notJoined, nil, nil
}

func (s *kubeadmJoin) Plan(ctx context.Context, n *node.Node) (plan.Change, error) {
	found, files, err := howFar(ctx, n)
	if err != nil {
		return plan.Change{}, err
	}
	if found == joined || found == unfinished {
		if err := s.sameCluster(ctx, n); err != nil || found == joined {
			return plan.Change{}, err
		}
	}
	if found == foreign {
		return plan.Change{}, fmt.Errorf("the machine has been joined before, and not by swdt: %s; "+
			"run kubeadm reset on it, or remove them", strings.Join(files, ", "))
	}
	name, err := s.nodeName(ctx, n)
	summary := fmt.Sprintf("join %s as %s", s.endpoint(), name)
	switch found {
	case halfJoined:
		summary += ", over what an interrupted join left"
	case unfinished:
		summary = "clear away what an interrupted join left"
	}
	return plan.Change{Needed: true, Summary: summary}, err
}

func (s *kubeadmJoin) Apply(ctx context.Context, n *node.Node, r ui.Reporter) (plan.Outcome, error) {
	found, _, err := howFar(ctx, n)
	if err != nil {
		return plan.Outcome{}, err
	}
	if found != unfinished {
		if err := s.begin(ctx, n); err != nil {
			return plan.Outcome{}, err
		}
		// A kubelet that an interrupted join started may have got its credentials
		// while we looked.
		if found, _, err = howFar(ctx, n); err != nil {
			return plan.Outcome{}, err
		}
	}
	if found == unfinished {
		return plan.Outcome{}, s.finish(ctx, n, r)
	}
	if err := s.prepare(ctx, n, r); err != nil {
		return plan.Outcome{}, s.failed(ctx, n, stepJoin, kubeletName, err)
	}
	if err := s.withToken(ctx, n, r, func(token string) error { return s.kubeadm(ctx, n, r, token) }); err != nil {
		return plan.Outcome{}, s.failed(ctx, n, stepJoin, kubeletName, err)
	}
	return plan.Outcome{}, s.finish(ctx, n, r)
}

// begin makes the machine one that kubeadm takes.
func (s *kubeadmJoin) begin(ctx context.Context, n *node.Node) error {
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return err
	}
	if s.restarted, err = s.clock(ctx, n); err != nil {
		return err
	}
	if err := update(ctx, n, func(r *record) { r.Node, r.Joining = name, true }); err != nil {
		return err
	}
	return stop(ctx, n, kubeletName)
}

// prepare clears away what kubeadm would refuse to go over.
func (s *kubeadmJoin) prepare(ctx context.Context, n *node.Node, r ui.Reporter) error {
	if err := s.sweep(ctx, n); err != nil {
		return err
	}
	if err := s.clear(ctx, n); err != nil {
		return err
	}
	return s.awaitNameFree(ctx, n, r)
}

// nameFreeIn is more than a cluster takes to notice that a node's kubelet has
// stopped.
const nameFreeIn = 2 * time.Minute

// awaitNameFree waits until no Node of our name is Ready, which kubeadm refuses:
// one whose kubelet, ours of before, has stopped is for some 40 seconds more. A
// lease that is renewed meanwhile is another machine's.
func (s *kubeadmJoin) awaitNameFree(ctx context.Context, n *node.Node, r ui.Reporter) error {
	if s.options.Cluster == nil {
		return nil
	}
	name, err := s.nodeName(ctx, n)
	if err != nil {
		return err
	}
	notice := waitFor(fmt.Sprintf("the cluster to notice that %s's kubelet was stopped", name), r)
	waiting, cancel := context.WithTimeout(ctx, nameFreeIn)
	defer cancel()
	first, err := s.options.Cluster.Node(waiting, name)
	s.newNode = err == nil && !first.Exists
	for is := first; ; {
		switch {
		case err != nil:
			return err
		case !is.Exists || !is.Ready:
			return nil
		case is.LeaseRenewed.After(first.LeaseRenewed):
			return fmt.Errorf("another machine is the node %s of the cluster: give this one another name with join.nodeName, or take the other one out", name)
		}
		if err := notice.rest(waiting); err != nil {
			return fmt.Errorf("wait for %s: still Ready after %s: %w; delete the Node %s", notice.what, since(notice.began), err, name)
		}
		is, err = s.options.Cluster.Node(waiting, name)
	}
}

// clear removes what a join of ours left.
func (s *kubeadmJoin) clear(ctx context.Context, n *node.Node) error {
	for _, path := range append(joinFiles(), layout.JoinConfiguration) {
		if err := smallfile.Remove(ctx, n, path); err != nil {
			return err
		}
	}
	return s.emptyFolder(ctx, n, kubeletData+`\pki`)
}

// emptyFolder removes all that is in a folder.
func (s *kubeadmJoin) emptyFolder(ctx context.Context, n *node.Node, folder string) error {
	list, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: folder})
	if errors.Is(err, host.ErrNotExist) {
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

// finish clears away what held the token, in the cluster and on the node.
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

// endpoint is the API server's host:port as the node reaches it.
func (j *joining) endpoint() string {
	endpoint := j.spec.Join.ControlPlaneEndpoint
	if endpoint == "" && j.options.Cluster != nil {
		return j.options.Cluster.Endpoint()
	}
	return withPort(endpoint)
}

// programPath is the PATH that kubeadm finds kubelet, xcopy and powershell on: the agent's
// own may be older than the machine's.
const programPath = v1alpha1.KubernetesFolder + `;` + containerdBin + `;C:\Windows\System32;C:\Windows;C:\Windows\System32\Wbem;C:\Windows\System32\WindowsPowerShell\v1.0`
