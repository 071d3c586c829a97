package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

// ErrNoCluster means that swdt has made no cluster of the given name.
var ErrNoCluster = errors.New("there is no such cluster")

// absentError is an ErrNoCluster that names the cluster.
type absentError struct{ name string }

func (e *absentError) Error() string {
	return "there is no cluster " + e.name + ": `swdt cluster create` makes it"
}

func (e *absentError) Unwrap() error { return ErrNoCluster }

// Report is a command's result for a cluster.
type Report struct {
	fleet.Outcome
	// Context is the name of the cluster's context in the kubeconfig.
	Context string `json:"context"`
	// Server is the URL of the API server on your machine.
	Server string `json:"server"`
	// Version is the version of the API server; empty if the API server does not answer.
	Version string `json:"version"`
	// Containers are the cluster's Linux nodes, which are containers on your machine.
	Containers []Container `json:"containers"`
	// Changes describes the changes that Create has made.
	Changes []string `json:"changes"`
	// Differences are the fields of the document whose values the cluster does not have. Only
	// reports on the status of a cluster have them.
	Differences []config.Problem `json:"differences"`
}

// ControlPlaneRole is the role of the container with the API server.
const ControlPlaneRole = "control-plane"

// Container is a Linux node of a cluster.
type Container struct {
	Name    string `json:"name"`
	Role    string `json:"role"`    // ControlPlaneRole or worker
	Address string `json:"address"` // in kind's network
}

func emptyReport(name, result string) Report {
	return Report{
		Outcome: fleet.NewOutcome(name, result, nil), Containers: []Container{}, Changes: []string{},
		Differences: []config.Problem{},
	}
}

// Opened is the report on a cluster, and the access to its API server. API is nil if the report has no
// server.
type Opened struct {
	Report
	API *cluster.Cluster
}

// Status describes a cluster that swdt has made. If there is no such cluster, the error is
// ErrNoCluster.
func (c *Clusters) Status(ctx context.Context, name string) (Report, error) {
	opened, err := c.Open(ctx, name)
	return opened.Report, err
}

// Open describes a cluster as Status does, and also returns the access to it. A command that needs both
// calls Open alone, since each call asks the container runtime a dozen times.
func (c *Clusters) Open(ctx context.Context, name string) (Opened, error) {
	one, err := c.made(name)
	if err != nil {
		return Opened{}, err
	}
	return c.describe(ctx, one)
}

// Compare does the same as Open, and adds the differences between the cluster and a document, with the
// images and the registry mirrors of the Linux nodes.
func (c *Clusters) Compare(ctx context.Context, doc config.ClusterDocument) (Opened, error) {
	one, err := c.made(doc.Cluster.Metadata.Name)
	if err != nil {
		return Opened{}, err
	}
	found, err := differences(doc, one)
	if err != nil {
		return Opened{}, err
	}
	var (
		group    errgroup.Group
		opened   Opened
		provided []config.Problem
	)
	group.Go(func() (err error) {
		opened, err = c.describe(ctx, one)
		return err
	})
	group.Go(func() (err error) {
		provided, err = c.lacking(ctx, doc, one)
		return err
	})
	err = group.Wait()
	opened.Differences = append(found, provided...)
	return opened, err
}

// made returns the record of a complete cluster that swdt has made.
func (c *Clusters) made(name string) (record, error) {
	one, there, err := c.look(name)
	switch {
	case err != nil:
		return one, err
	case !there:
		return one, &absentError{name}
	case !one.Complete:
		return one, fmt.Errorf("cluster %s is incomplete, since its create was interrupted: "+
			"`swdt cluster create` makes it again", name)
	}
	return one, nil
}

// Made reports whether kind has containers of a cluster that swdt has made, or has begun to make.
func (c *Clusters) Made(name string) (bool, error) {
	_, there, err := c.look(name)
	return there, err
}

// Kubeconfig returns a kubeconfig that contains only this cluster. If internal is true, it contains
// the address at which containers in kind's network reach the API server. If kind has no such cluster,
// the error is ErrNoCluster.
func (c *Clusters) Kubeconfig(name string, internal bool) ([]byte, error) {
	text, err := c.kind.KubeConfig(name, internal)
	if err != nil {
		if containers, listErr := c.kind.ListNodes(name); listErr == nil && len(containers) == 0 {
			return nil, &absentError{name}
		}
		return nil, failed(err, "read the kubeconfig of cluster %s", name)
	}
	return []byte(text), nil
}

// describe returns a report on the containers and the API server of a cluster. It looks at both at the
// same time.
func (c *Clusters) describe(ctx context.Context, one record) (Opened, error) {
	opened := Opened{Report: emptyReport(one.Name, fleet.OK)}
	opened.Context = "kind-" + one.Name
	var group errgroup.Group
	group.Go(func() (err error) {
		opened.Containers, err = c.containers(one.Name)
		return err
	})
	server := Opened{}
	group.Go(func() (err error) {
		server, err = c.openServer(ctx, one.Name)
		return err
	})
	err := group.Wait()
	opened.API, opened.Server, opened.Version = server.API, server.Server, server.Version
	return opened, err
}

// containers returns the containers of a cluster, sorted by name.
func (c *Clusters) containers(name string) ([]Container, error) {
	found, err := c.kind.ListNodes(name)
	if err != nil {
		return []Container{}, failed(err, "list the containers of cluster %s", name)
	}
	all := make([]Container, len(found))
	var group errgroup.Group
	for i, container := range found {
		group.Go(func() (err error) {
			all[i], err = describeContainer(container)
			return failed(err, "look at container %s", container)
		})
	}
	if err := group.Wait(); err != nil {
		return []Container{}, err
	}
	slices.SortFunc(all, func(a, b Container) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// openServer returns the access to the API server of a cluster, with its URL and its version.
func (c *Clusters) openServer(ctx context.Context, name string) (opened Opened, err error) {
	text, err := c.Kubeconfig(name, false)
	if err != nil {
		return opened, err
	}
	if opened.API, err = cluster.Parse(text); err != nil {
		return opened, fmt.Errorf("read the kubeconfig of cluster %s: %w", name, err)
	}
	opened.Server = opened.API.Server()
	opened.Version, err = opened.API.Version(ctx)
	return opened, err
}

func describeContainer(n nodes.Node) (Container, error) {
	role, err := n.Role()
	if err != nil {
		return Container{}, err
	}
	address, _, err := n.IP()
	return Container{Name: n.String(), Role: role, Address: address}, err
}

// Names returns the cluster for -o name.
func (r Report) Names() []string { return []string{"cluster/" + r.Name} }

// WriteText writes the report for people.
func (r Report) WriteText(page *ui.Page) error {
	lines := []string{fmt.Sprintf("cluster %s: %s", r.Name, r.sentence())}
	if r.Server != "" {
		lines = append(lines, fmt.Sprintf("  Kubernetes %s at %s, context %s", r.Version, r.Server, r.Context))
	}
	for _, n := range r.Containers {
		lines = append(lines, fmt.Sprintf("  %s (%s) %s", n.Name, n.Role, n.Address))
	}
	for _, change := range r.Changes {
		if change != madeByKind {
			lines = append(lines, "  "+change)
		}
	}
	for _, d := range r.Differences {
		lines = append(lines, "differs: "+d.String())
	}
	_, err := fmt.Fprintln(page, strings.Join(lines, "\n"))
	return err
}

func (r Report) sentence() string {
	switch {
	case slices.Contains(r.Changes, madeByKind):
		return "made"
	case len(r.Changes) > 0:
		return "existed, is changed"
	case r.Result == fleet.Changed:
		return "deleted"
	case r.Server == "":
		return "there is none, nothing to do"
	case r.Result == fleet.Unchanged:
		return "exists, nothing to do"
	}
	return "its API server answers"
}
