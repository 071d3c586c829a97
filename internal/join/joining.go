package join

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/artifact"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
)

// joining is what the steps of one run on one node share.
type joining struct {
	doc     config.Document
	options Options
	reset   ResetOptions
	spec    v1alpha1.Kubernetes

	sets  map[artifact.Component]artifact.Set // resolved in this run
	facts *agentv1.FactsReply                 // as first read in this run
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

// nodeName is what the Node object is called.
func (j *joining) nodeName(ctx context.Context, n *node.Node) (string, error) {
	if name := j.spec.Join.NodeName; name != "" {
		return name, nil
	}
	facts, err := j.machine(ctx, n)
	if err != nil {
		return "", err
	}
	return strings.ToLower(facts.GetHostname()), nil
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

// rest is the pause of such a wait.
func rest(ctx context.Context) error {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
