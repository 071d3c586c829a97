// Package preflight looks at a Windows machine and at the cluster that it is to
// join, changes neither, and says everything that would make `swdt join` fail:
// all at once, each with a remedy.
//
// A run gathers the facts (node.go, cluster.go), each of which may be unknown,
// then lets every check look at them. A check (checks.go; machine.go, kubelet.go,
// leftovers.go, runtimes.go, reach.go, access.go, versions.go, network.go) is a
// function over facts that asks nobody anything.
package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/finding"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
)

// Where a problem is.
type Where string

const (
	OnNode    Where = "node"
	OnCluster Where = "cluster"
)

// Severity of a problem.
type Severity = finding.Severity

const (
	Error   = finding.Error   // the join would fail
	Warning = finding.Warning // it may work; something will not
	Info    = finding.Info    // worth knowing
)

// Problem is one thing that a check has found.
type Problem struct {
	Check    string   `json:"check"`
	Where    Where    `json:"where"`
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Remedy   string   `json:"remedy,omitempty"`
	Evidence string   `json:"evidence,omitempty"` // what was seen
	// Ignored is whether it is an error that the node file wants to be a warning.
	Ignored bool `json:"ignored,omitempty"`
}

// Input is what to look at.
type Input struct {
	// Node is connected. nil: look at the cluster only.
	Node *node.Node
	// Cluster is the one to join. nil: look at the node only.
	Cluster *cluster.Cluster
	Spec    v1alpha1.Kubernetes
	// Kubelet and Kubeadm are the versions of the programs, where they are known
	// already. Default: Spec.Version.
	Kubelet, Kubeadm string
	// Own is what swdt itself has put on the node in an earlier run.
	Own Own
	// MayReboot is whether the join is allowed to reboot the node.
	MayReboot bool
}

// Own is what swdt put on the node: no leftovers of somebody else.
type Own struct {
	Joined   bool     // swdt has made it a node of a cluster, or has begun to
	Files    []string // paths
	Services []string // names
	// Authorities are the CAs of the cluster that it is a node of, sha256:…; none
	// until kubelet has its credentials.
	Authorities []string
}

// Report is what was found.
type Report struct {
	NodeName string    `json:"nodeName,omitempty"` // the Node object's
	Windows  string    `json:"windows,omitempty"`  // ltsc2022; "" where it is not a known one
	Checks   []string  `json:"checks"`             // that were made
	Skipped  []Skipped `json:"skipped,omitempty"`
	Problems []Problem `json:"problems"` // errors first
}

// Skipped is a check that could not be made.
type Skipped struct {
	Check string `json:"check"`
	Why   string `json:"why"`
}

// Failed is whether there is an error among the problems.
func (r Report) Failed() bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Severity == Error })
}

// Count is how many problems there are of a severity.
func (r Report) Count(s Severity) (n int) {
	for _, p := range r.Problems {
		if p.Severity == s {
			n++
		}
	}
	return n
}

// Run makes all checks that the input allows. Its error is one of getting at the
// facts at all: the node was lost, or ctx has ended.
func Run(ctx context.Context, in Input) (Report, error) {
	f := facts{
		spec: in.Spec, own: in.Own, mayReboot: in.MayReboot,
		kubelet: cmp.Or(in.Kubelet, in.Spec.Version), kubeadm: cmp.Or(in.Kubeadm, in.Spec.Version),
	}
	// The cluster first: it says which addresses the node has to reach.
	if in.Cluster != nil {
		c, err := gatherCluster(ctx, in)
		if err != nil {
			return Report{}, fmt.Errorf("look at the cluster: %w", err)
		}
		f.cluster = c
	}
	if in.Node != nil {
		n, err := gatherNode(ctx, in, f.targets())
		if err != nil {
			return Report{}, fmt.Errorf("look at the node: %w", err)
		}
		f.node = n
	}
	if f.cluster != nil {
		if err := gatherNamesake(ctx, in, &f); err != nil {
			return Report{}, fmt.Errorf("look at the cluster: %w", err)
		}
	}
	return f.report(in.Spec.Join.IgnorePreflightErrors), nil
}

// report lets every check that applies look at the facts.
func (f *facts) report(ignore []string) Report {
	r := Report{NodeName: f.nodeName(), Windows: f.windowsName(), Checks: []string{}, Problems: []Problem{}}
	told := map[string]bool{}
	for _, c := range Checks() {
		if c.Where == OnNode && f.node == nil || c.Where == OnCluster && f.cluster == nil {
			continue
		}
		if err := c.unknown(f); err != nil {
			r.Skipped = append(r.Skipped, Skipped{c.ID, err.Error()})
			// One fact may be needed by several checks: its failure is told once.
			if p, worth := c.untold(err); worth && !told[p.Evidence] {
				told[p.Evidence] = true
				r.Problems = append(r.Problems, p)
			}
			continue
		}
		r.Checks = append(r.Checks, c.ID)
		for _, p := range c.look(f) {
			p.Check, p.Where = c.ID, c.Where
			r.Problems = append(r.Problems, p.unless(ignore))
		}
	}
	slices.SortStableFunc(r.Problems, func(a, b Problem) int { return a.Severity.Compare(b.Severity) })
	return r
}

// untold is the problem that a check could not be made; none where the machine
// cannot tell at all, or where that has been said already.
func (c Check) untold(err error) (Problem, bool) {
	if errors.Is(err, host.ErrNotSupported) || errors.Is(err, errSaid) {
		return Problem{}, false
	}
	return Problem{
		Check: c.ID, Where: c.Where, Severity: Warning,
		What: "could not look at " + c.Looks, Evidence: err.Error(),
	}, true
}

// unless makes an error a warning where the node file says so. Checks compare
// without case, as kubeadm's do.
func (p Problem) unless(ignore []string) Problem {
	wanted := slices.ContainsFunc(ignore, func(id string) bool {
		return strings.EqualFold(id, "all") || strings.EqualFold(id, p.Check)
	})
	if wanted && p.Severity == Error {
		p.Severity, p.Ignored = Warning, true
	}
	return p
}
