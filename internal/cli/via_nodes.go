package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/maruel/natural"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node/viapod"
	"github.com/swdt-dev/swdt/internal/ui"
)

// viaClusters returns the clusters that all nodes of this command share.
func (a *app) viaClusters() *viapod.Clusters {
	if a.clusters == nil {
		a.clusters = viapod.NewClusters()
	}
	return a.clusters
}

// clusterDocuments returns the nodes that --node and --selector choose in the cluster. Names are those of the
// cluster's Nodes, and contact nothing. For a selector the API server lists the Nodes.
func (a *app) clusterDocuments() ([]config.Document, error) {
	described, err := a.describedNodes()
	if err != nil {
		return nil, err
	}
	names := a.namesInCluster(described)
	switch {
	case a.global.selector == "" && len(names) > 0:
		return config.OfNames(names, described, a.applyVia)
	case a.completing():
		return nil, usagef("a completion does not ask the cluster")
	case a.global.selector == "":
		typed := "--via " + a.global.via.text + ": "
		if a.global.via.implied {
			typed = ""
		}
		return nil, usagef("%sname the nodes with %s, as `kubectl get nodes` lists them, or choose them by their "+
			"labels, as in -l %s=windows, or name node files with -c", typed, nodeFlagOf(a.invoked), corev1.LabelOSStable)
	}
	if err := a.needsNodeFile(); err != nil {
		return nil, err
	}
	selector, err := labels.Parse(a.global.selector)
	if err != nil {
		return nil, usagef("-l %s: %v; write labels as in pool=a,!gpu or zone in (x,y)", a.global.selector, err)
	}
	ctx, cancel := a.global.bounded(a.invoked.Context())
	defer cancel()
	nodes, err := a.listNodes(ctx, names, selector)
	if err != nil {
		return nil, refusedList(explain(ctx, err))
	}
	chosen, err := a.windowsNodes(nodes)
	if err != nil {
		return nil, err
	}
	return config.OfNames(chosen, described, a.applyVia)
}

// refusedList adds the exit code for an unreachable node to err if the API server cannot be reached, or does
// not list its Nodes for this user.
func refusedList(err error) error {
	var forbidden *cluster.ForbiddenError
	if errors.As(err, &forbidden) {
		return &exitError{code: exitUnreachable, err: err}
	}
	return unreachable(err)
}

// listNodes returns the cluster's Nodes that match the selector and, if there are names, one of the names.
func (a *app) listNodes(ctx context.Context, names []string, selector labels.Selector) ([]*corev1.Node, error) {
	c, err := a.viaCluster()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return a.viaClusters().List(ctx, c, selector)
	}
	all, err := a.viaClusters().List(ctx, c, labels.Everything())
	if err != nil {
		return nil, err
	}
	if err := unknownNodes(names, all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(n *corev1.Node) bool {
		return !slices.Contains(names, n.Name) || !selector.Matches(labels.Set(n.Labels))
	}), nil
}

// viaCluster returns the cluster of --via.
func (a *app) viaCluster() (*cluster.Cluster, error) {
	named := a.clusterOfVia()
	return a.viaClusters().Open(cluster.Options{Kubeconfig: named.kubeconfig, Context: named.context,
		NoStdin: a.completing()})
}

// unknownNodes returns an error with each name that is no Node of the cluster.
func unknownNodes(names []string, all []*corev1.Node) error {
	var known []string
	for _, n := range all {
		known = append(known, n.Name)
	}
	var problems []config.Problem
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		remedy := "`kubectl get nodes` lists them"
		if meant := closest(name, known); meant != "" {
			remedy = fmt.Sprintf("did you mean %s? %s", meant, remedy)
		}
		problems = append(problems, config.Problem{Field: "--node", What: fmt.Sprintf("the cluster has no node %q", name),
			Remedy: remedy})
	}
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	return nil
}

// windowsNodes returns the names of the Nodes that run Windows, and reports which of the others it leaves out.
func (a *app) windowsNodes(nodes []*corev1.Node) (windows []string, err error) {
	var others []string
	for _, n := range nodes {
		if n.Labels[corev1.LabelOSStable] == string(corev1.Windows) {
			windows = append(windows, n.Name)
		} else {
			others = append(others, n.Name)
		}
	}
	slices.SortFunc(windows, natural.Compare)
	slices.SortFunc(others, natural.Compare)
	if len(windows) == 0 {
		return nil, a.noWindowsNode(others)
	}
	if len(others) > 0 {
		story := a.newStory()
		story.Node("").Info("left out nodes that do not run Windows: %s", firstOf(others))
		story.End()
	}
	return windows, nil
}

// noWindowsNode returns the error for a selector that chooses no Windows node. others are the nodes that it
// matches.
func (a *app) noWindowsNode(others []string) error {
	what := fmt.Sprintf("no Windows node of the cluster has the labels %q", a.global.selector)
	if len(a.global.nodes) > 0 {
		what = fmt.Sprintf("none of the Windows nodes %s has the labels %q", strings.Join(a.global.nodes, ", "),
			a.global.selector)
	}
	if len(others) > 0 {
		what += ", only nodes that do not run Windows: " + firstOf(others)
	}
	return &config.Error{Problems: []config.Problem{{Field: "--selector", What: what,
		Remedy: "`kubectl get nodes --show-labels` lists the nodes with their labels" +
			config.EmptyValues(a.global.selector)}}}
}

// mostNamed bounds the nodes that a message names.
const mostNamed = 5

// firstOf returns the first names for a message, and the number of the others.
func firstOf(names []string) string {
	if len(names) <= mostNamed {
		return ui.Printable(strings.Join(names, ", "))
	}
	return ui.Printable(fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed))
}

// completing reports whether swdt runs to complete a command line.
func (a *app) completing() bool {
	return a.invoked == nil || a.invoked.Name() == cobra.ShellCompRequestCmd ||
		a.invoked.Name() == cobra.ShellCompNoDescRequestCmd
}

// completeClusterNodes completes the names of the Windows nodes of the cluster of --via.
func (a *app) completeClusterNodes(cmd *cobra.Command, toComplete string) []string {
	c, err := a.viaCluster()
	if err != nil {
		return nil
	}
	names, err := cachedNames("nodes of "+c.Server()+" "+a.global.via.text, func() ([]string, error) {
		return askedInTime(cmd, c.WindowsNodes)
	})
	if err != nil {
		return nil
	}
	slices.SortFunc(names, natural.Compare)
	return beginningWith(names, toComplete)
}
