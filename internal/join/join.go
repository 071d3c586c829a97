// Package join makes a bare Windows machine a Ready node of a cluster, as a list
// of small idempotent steps, and takes it back (Reset).
//
// Each step compares first and changes only what differs, so that a second run
// finds nothing to do, a run that was cut is finished by the next one, and a
// change of the node file is exactly that change. What swdt puts on a machine is
// written down there (record.go) before it is made; Reset takes back what is
// written down and nothing else.
//
//   - folders.go, binaries.go: what is put there
//   - containerdconfig.go, containerd.go, crictl.go, older.go: containerd
//   - surroundings.go: features, PATH, hosts file, firewall
//   - kubelet.go, kubeletconfig.go: the kubelet service and what it reads
//   - kubeadm.go, configuration.go, token.go, credentials.go: becoming a node
//   - ready.go: what the cluster says of it
//   - reset.go, leave.go, containers.go: the way back
//   - failed.go: what is known of why it did not work
package join

import (
	"context"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/artifact"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/source"
	"github.com/swdt-dev/swdt/internal/transfer"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Artifacts finds the programs of a node; an *artifact.Store does.
type Artifacts interface {
	Resolve(ctx context.Context, wish artifact.Wish, r ui.Reporter) (artifact.Set, error)
}

// Options are what joining needs beside the node file. Cluster, Artifacts,
// Sources and Depot are shared between nodes.
type Options struct {
	// Cluster is the one to join. nil: none at hand; then the node file has the
	// token, the CA's hash and the endpoint, and only the node itself is asked
	// whether it worked.
	Cluster *cluster.Cluster
	// Artifacts finds programs. nil: a store of its own.
	Artifacts Artifacts
	// Sources and Depot are for pushing them, as in deploy.Options.
	Sources *source.Set
	Depot   *transfer.Depot
	// Mirror stands in for every URL, see artifact.Wish.
	Mirror string
	// Holder names who changes the node, for others that want to.
	Holder string
	// Reporter hears of downloads while the node is only compared. nil: nobody.
	Reporter ui.Reporter
	// ReadyTimeout is how long the node may take to be Ready. Default
	// DefaultReadyTimeout.
	ReadyTimeout time.Duration
	// LookupEnv is for join.tokenFrom. nil: the environment.
	LookupEnv func(name string) (string, bool)
}

// DefaultReadyTimeout lets the pod network pull images of some gigabytes.
const DefaultReadyTimeout = 10 * time.Minute

// The steps' names, as they are printed.
const (
	stepFeatures          = "features"
	stepFolders           = "folders"
	stepContainerdFiles   = "containerd files"
	stepContainerdConfig  = "containerd config"
	stepContainerdService = "containerd service"
	stepCrictl            = "crictl config"
	stepKubernetesFiles   = "kubernetes files"
	stepPath              = "PATH"
	stepHosts             = "hosts file"
	stepFirewall          = "firewall"
	stepKubeletConfig     = "kubelet config"
	stepKubeletService    = "kubelet service"
	stepJoin              = "join"
	stepKubelet           = "kubelet"
	stepNode              = "node"
	stepRecord            = "record"
)

// Steps are what makes the document's machine a Ready node. They share what they
// have found out, so they are for one run on one node; each needs all before it
// (plan.Options.Ordered). The error is a *config.Error: the node file lacks
// something.
func Steps(doc config.Document, o Options) ([]plan.Step, error) {
	if err := check(doc, o); err != nil {
		return nil, err
	}
	return newJoining(doc, o).steps(), nil
}

func (j *joining) steps() []plan.Step {
	return []plan.Step{
		featuresStep(j),
		&folders{j},
		containerdFiles(j),
		&containerdConfig{j},
		&containerdService{j},
		&crictlConfig{j},
		kubernetesFiles(j),
		pathStep(j),
		hostsStep(j),
		firewallStep(j),
		&kubeletConfig{j},
		&kubeletService{j},
		&kubeadmJoin{j},
		&kubelet{j},
		&ready{j},
	}
}

func newJoining(doc config.Document, o Options) *joining {
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
	return &joining{doc: doc, options: o, spec: spec, sets: map[artifact.Component]artifact.Set{}}
}

// check finds what the node file must say for a join and does not.
func check(doc config.Document, o Options) error {
	spec := doc.Node.Spec.Kubernetes
	var problems []config.Problem
	missing := func(field, what, remedy string) {
		problems = append(problems, config.Problem{File: doc.File, Line: doc.Line, Field: "spec.kubernetes." + field, What: what, Remedy: remedy})
	}
	if spec.Version == "" {
		missing("version", "is missing", "write the version of Kubernetes to install, such as 1.36.3")
	}
	if spec.Containerd.Version == "" && spec.Containerd.Source == "" {
		missing("containerd.version", "is missing", "write the version of containerd to install, such as 1.7.12, or its source")
	}
	if o.Cluster == nil {
		checkWithoutCluster(spec.Join, missing)
	}
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	return nil
}

func checkWithoutCluster(join v1alpha1.Join, missing func(field, what, remedy string)) {
	const kubeconfig = ", or name a kubeconfig with --kubeconfig"
	if join.Token == "" && join.TokenFrom == nil {
		missing("join.token", "is missing and there is no cluster to make one", "write it as kubeadm token create prints it"+kubeconfig)
	}
	if join.DiscoveryTokenCACertHash == "" {
		missing("join.discoveryTokenCACertHash", "is missing and there is no kubeconfig to take it from", "write it as kubeadm prints it"+kubeconfig)
	}
	if join.ControlPlaneEndpoint == "" {
		missing("join.controlPlaneEndpoint", "is missing and there is no kubeconfig to take it from", "write the API server's host:port"+kubeconfig)
	}
}
