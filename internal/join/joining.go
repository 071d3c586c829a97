package join

import (
	"context"
	"fmt"
	"os"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/artifact"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// joining is what the steps of one run on one node share.
type joining struct {
	doc     config.Document
	options Options
	reset   ResetOptions
	spec    v1alpha1.Kubernetes

	sets  map[artifact.Component]artifact.Set // resolved in this run
	facts *agentv1.FactsReply                 // as first read in this run
	node  string                              // the Node's name, likewise
	// restarted is when, by the node's clock, kubelet was last about to be
	// started in this run. Zero: it was not.
	restarted time.Time
	// newNode is set where there was no Node of our name before.
	newNode bool
}

// machine reads the machine's facts, once.
func (j *joining) machine(ctx context.Context, n *node.Node) (*agentv1.FactsReply, error) {
	if j.facts != nil {
		return j.facts, nil
	}
	facts, err := n.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return nil, fmt.Errorf("read what kind of machine it is: %w", err)
	}
	j.facts = facts
	return facts, nil
}

// nodeName is what the Node object is called, found out once.
func (j *joining) nodeName(ctx context.Context, n *node.Node) (name string, err error) {
	if j.node == "" {
		j.node, err = n.ObjectName(ctx, j.spec.Join)
	}
	return j.node, err
}

// clock reads the node's clock: what is compared with its leases.
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

// Where things stand on the machine.
const (
	containerdBin  = v1alpha1.ContainerdFolder + `\bin`
	containerdExe  = containerdBin + `\containerd.exe`
	containerdToml = v1alpha1.ContainerdFolder + `\config.toml`
	containerdData = `C:\ProgramData\containerd`

	kubernetesConfig = `C:\etc\kubernetes`
	kubeletData      = `C:\var\lib\kubelet`
	kubeadmExe       = v1alpha1.KubernetesFolder + `\kubeadm.exe`

	containerdName = "containerd" // the services
	kubeletName    = "kubelet"
)

// lookAgain is how long a wait for something on the node rests between looks.
const lookAgain = 200 * time.Millisecond

// tellAgain is how often a wait says that it still waits.
const tellAgain = 10 * time.Second

// patience is a wait for something that only looking tells.
type patience struct {
	what        string // is waited for
	reporter    ui.Reporter
	began, told time.Time
}

func waitFor(what string, r ui.Reporter) *patience {
	return &patience{what: what, reporter: r, began: time.Now()}
}

// rest is the pause between two looks. It says what is waited for, the first time
// and now and then. It returns ctx's cause when that ends before.
func (p *patience) rest(ctx context.Context) error {
	if now := time.Now(); p.told.IsZero() || now.Sub(p.told) >= tellAgain {
		p.reporter.Step("waiting for %s, %s", p.what, since(p.began))
		p.told = now
	}
	if wait.For(ctx, lookAgain) != nil {
		return context.Cause(ctx)
	}
	return nil
}

func since(began time.Time) time.Duration { return time.Since(began).Round(time.Second) }
