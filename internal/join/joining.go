package join

import (
	"context"
	"fmt"
	"os"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// joining is the state that the steps of one run on one node share.
type joining struct {
	node    *node.Node // nil: the steps are only counted or named
	doc     config.Document
	options Options
	reset   ResetOptions
	image   bool // the machine becomes an image, and does not join
	spec    v1alpha1.Kubernetes

	sets  map[artifact.Component]artifact.Set // resolved in this run
	facts *agentv1.FactsReply                 // as first read in this run
	name  string                              // the Node's name, as first read in this run
	// restarted is the time, by the node's clock, just before kubelet was last started
	// in this run. Zero: it was not started.
	restarted time.Time
	// compared is the record as rootCertificates.Plan has read it, for crictlConfig.Plan, which runs in the same
	// comparison and so need not ask the node again. nil: it was not read.
	compared *record
	// ranges are the address ranges of the cluster, once they are read.
	ranges []string
	// source is the node's address that address has found; "": none yet.
	source string
	// exchanges is set once the run has found that it will replace containerd together with its
	// config.toml, and is cleared when Apply begins to replace them.
	exchanges bool
	// drained is the name of the node if a reset has cordoned the node and the node has not left
	// the cluster yet; else "".
	drained string
	// choice is how the cluster runs kube-proxy; hasKubeProxy is set if the machine's record has the service. Without
	// them, no step concerns kube-proxy.
	choice       cluster.KubeProxyChoice
	hasKubeProxy bool
	// newNode is set if the cluster had no Node of this name before the join.
	newNode bool
}

// machine reads the machine's facts, once.
func (j *joining) machine(ctx context.Context, n *node.Node) (*agentv1.FactsReply, error) {
	if j.facts != nil {
		return j.facts, nil
	}
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return nil, fmt.Errorf("read the machine's facts: %w", err)
	}
	j.facts = facts
	return facts, nil
}

// nodeName returns the name of the Node object, which it determines once. For an image it returns
// "", since each machine of the image gets another name.
func (j *joining) nodeName(ctx context.Context, n *node.Node) (name string, err error) {
	if j.name == "" && !j.image {
		j.name, err = n.ObjectName(ctx, j.spec.Join)
	}
	return j.name, err
}

// clock reads the node's clock. The times of the node's leases are by that clock.
func (j *joining) clock(ctx context.Context, n *node.Node) (time.Time, error) {
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return time.Time{}, fmt.Errorf("read the node's clock: %w", err)
	}
	return facts.GetTime().AsTime(), nil
}

func (j *joining) lookupEnv(name string) (string, bool) {
	if j.options.LookupEnv != nil {
		return j.options.LookupEnv(name)
	}
	return os.LookupEnv(name)
}

// Paths and services on the machine.
const (
	containerdBin  = v1alpha1.ContainerdFolder + `\bin`
	containerdExe  = containerdBin + `\containerd.exe`
	containerdToml = v1alpha1.ContainerdFolder + `\config.toml`
	containerdData = `C:\ProgramData\containerd`

	kubernetesConfig = `C:\etc\kubernetes`
	kubeletData      = `C:\var\lib\kubelet`
	kubeadmExe       = v1alpha1.KubernetesFolder + `\kubeadm.exe`

	containerdName = "containerd" // the names of the services
	kubeletName    = "kubelet"
)

// pollInterval is the pause between two looks at the node while swdt waits for a change there.
const pollInterval = 200 * time.Millisecond

// waitFor returns a condition that reports what it waits for after the first look without success.
func waitFor(what string, limit time.Duration, r ui.Reporter, look func(context.Context) error) wait.Condition {
	reported := false
	return wait.Condition{
		Name: what, Interval: pollInterval, Limit: limit, Look: look,
		Pending: func(error) {
			if !reported {
				r.Step("waiting for %s", what)
				reported = true
			}
		},
	}
}
