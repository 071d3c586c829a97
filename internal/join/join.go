// Package join makes a bare Windows machine a Ready node of a cluster, as a list of small
// idempotent steps. Reset undoes these steps.
//
// Each step compares first and changes only what differs. So a second run finds nothing to do, a
// run after an interrupted run completes the join, and a change of the node file causes only the
// corresponding change on the machine. Before a step creates a thing on the machine, it records the
// thing there (record.go); Reset removes only recorded things.
//
//   - run.go: the run of a join, which is the checks and then the steps; the run of a reset
//   - prepare.go: the steps before the join itself, also for a machine that becomes an image
//   - folders.go, binaries.go: folders and programs
//   - containerdconfig.go, containerd.go, crictl.go, exchange.go: containerd
//   - setupsteps.go, ports.go, roots.go: features, PATH, hosts file, firewall, dynamic ports, root certificates
//   - kubelet.go, address.go, recovery.go, kubeletconfig.go: the kubelet service and its configuration
//   - kubeadm.go, configuration.go, token.go, credentials.go: becoming a node
//   - ready.go: the Node object
//   - proxy.go: the variables of the services
//   - kubeproxy.go: the service kube-proxy, if the cluster wants one
//   - upgrade.go, upgradestep.go, byhand.go, kubeletrecord.go: another version of Kubernetes on a node
//   - reset.go, leave.go, containers.go, networks.go: undoing a join
//   - failed.go: the likely cause of a failure
package join

import (
	"context"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Artifacts finds the programs of a node. *artifact.Store implements it.
type Artifacts interface {
	Resolve(ctx context.Context, wish artifact.Wish, r ui.Reporter) (artifact.Set, error)
}

// Options are the inputs of a join besides the node file. Cluster, Artifacts, Sources and
// Depot are shared between nodes.
type Options struct {
	// Cluster is the cluster to join. nil: swdt has no access to the cluster. The node file must
	// then have the token, the CA's hash and the endpoint, and swdt asks only the node whether
	// the join succeeded.
	Cluster *cluster.Cluster
	// Artifacts finds the programs to install. nil: the join makes a new store.
	Artifacts Artifacts
	// Sources and Depot are for pushing the programs, as in push.Options.
	Sources *source.Set
	Depot   *transfer.Depot
	// Mirror is a URL or a folder that replaces the URLs of all downloads; see artifact.Wish.
	Mirror string
	// Holder identifies who changes the node, for other users that want to change it.
	Holder string
	// Reporter receives the progress of downloads while the node is compared. nil: none.
	Reporter ui.Reporter
	// ReadyTimeout is how long the node may take to be Ready. Default
	// DefaultReadyTimeout.
	ReadyTimeout time.Duration
	// DryRun, AllowReboot and Drain are for Run. DryRun only shows the changes. AllowReboot reboots
	// the machine if a change needs a reboot. Drain drains the node while it is changed, and needs
	// Cluster. If Drain is nil, the pods stay on the node.
	DryRun, AllowReboot bool
	Drain               *cluster.DrainOptions
	// FindPodNetwork finds the HNS network of the pods on a node; found is false if the node has no network of this name
	// yet. It is needed in clusters that run kube-proxy as a service.
	FindPodNetwork func(ctx context.Context, n *node.Node, name string) (network PodNetwork, found bool, err error)
	// Checked receives the problems that Run's checks have found, before Run changes anything. nil:
	// the problems are only in the result.
	Checked func([]finding.Problem)
	// LookupEnv returns the environment variable that join.tokenFrom names. nil: the real
	// environment is used.
	LookupEnv func(name string) (string, bool)
}

// DefaultReadyTimeout is enough for the pod network to pull images of some gigabytes.
const DefaultReadyTimeout = 10 * time.Minute

// The printed names of the steps.
const (
	stepFeatures          = "features"
	stepFolders           = "folders"
	stepRoots             = "root certificates"
	stepContainerdFiles   = "containerd files"
	stepContainerdConfig  = "containerd config"
	stepContainerdService = "containerd service"
	stepCrictl            = "crictl config"
	stepKubernetesFiles   = "kubernetes files"
	stepPath              = "PATH"
	stepHosts             = "hosts file"
	stepFirewall          = "firewall"
	stepPorts             = "dynamic ports"
	stepKubeletConfig     = "kubelet config"
	stepKubeletService    = "kubelet service"
	stepJoin              = "join"
	stepKubelet           = "kubelet"
	stepNode              = "node"
	stepNetworks          = "HNS networks"
	stepKubeProxy         = "kube-proxy"
	stepRecord            = "record"
)

// Steps returns the steps that make the document's machine, n, a Ready node. They share facts
// that they have read, so they are for one run. Each step needs all previous
// steps (plan.Options.Ordered). If the node file lacks something, the error is a
// *config.Error.
func Steps(n *node.Node, doc config.Document, o Options) ([]plan.Step, error) {
	if err := Validate(doc, o); err != nil {
		return nil, err
	}
	return newJoining(n, doc, o).steps(), nil
}

func (j *joining) steps() []plan.Step {
	steps := append(j.preparation(), &kubeadmJoin{j}, &kubelet{j}, &ready{j})
	if j.hasKubeProxy || j.choice.Form == cluster.KubeProxyService {
		steps = append(steps, &kubeProxy{j})
	}
	return steps
}

func newJoining(n *node.Node, doc config.Document, o Options) *joining {
	if o.Sources == nil {
		o.Sources = source.NewSet(source.Options{})
	}
	if o.Artifacts == nil {
		o.Artifacts = artifact.NewStore(artifact.Options{})
	}
	if o.Reporter == nil {
		o.Reporter = ui.Discard{}
	}
	if o.ReadyTimeout == 0 {
		o.ReadyTimeout = DefaultReadyTimeout
	}
	spec := doc.Node.Spec.Kubernetes
	return &joining{node: n, doc: doc, options: o, spec: spec, sets: map[artifact.Component]artifact.Set{}}
}

// Validate returns a *config.Error if the node file lacks something that a join
// needs. It contacts neither the node nor the cluster.
func Validate(doc config.Document, o Options) error {
	spec := doc.Node.Spec.Kubernetes
	return problemsOf(doc, func(missing func(field, what, remedy string)) {
		checkVersions(spec, missing)
		if o.Cluster == nil {
			checkWithoutCluster(spec.Join, missing)
		}
	})
}

// problemsOf returns a *config.Error with the fields of spec.kubernetes that check reports as
// missing; nil if check reports none.
func problemsOf(doc config.Document, check func(missing func(field, what, remedy string))) error {
	var problems []config.Problem
	check(func(field, what, remedy string) {
		problems = append(problems, config.Problem{File: doc.File, Line: doc.Line, Field: "spec.kubernetes." + field,
			What: what, Remedy: remedy})
	})
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	return nil
}

func checkVersions(spec v1alpha1.Kubernetes, missing func(field, what, remedy string)) {
	if spec.Version == "" {
		missing("version", "is missing", "write the version of Kubernetes to install, such as 1.36.3")
	}
	if spec.Containerd.Version == "" && spec.Containerd.Source == "" {
		missing("containerd.version", "is missing",
			"write the version of containerd to install, such as 1.7.12, or its source")
	}
}

func checkWithoutCluster(join v1alpha1.Join, missing func(field, what, remedy string)) {
	const kubeconfig = ", or name a kubeconfig with --kubeconfig"
	if join.Token == "" && join.TokenFrom == nil {
		missing("join.token", "is missing and there is no cluster to make one",
			"write it as kubeadm token create prints it"+kubeconfig)
	}
	if join.DiscoveryTokenCACertHash == "" {
		missing("join.discoveryTokenCACertHash", "is missing and there is no kubeconfig to take it from",
			"write it as kubeadm prints it"+kubeconfig)
	}
	if join.ControlPlaneEndpoint == "" {
		missing("join.controlPlaneEndpoint", "is missing and there is no kubeconfig to take it from",
			"write the API server's host:port"+kubeconfig)
	}
}
