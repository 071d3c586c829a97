// Package preflight inspects a Windows machine and the cluster that it is to join, and changes
// nothing. It reports everything that would make `swdt join` fail: all problems at once, each with
// a remedy.
//
// A run gathers the facts (node.go, cluster.go), each of which may be unknown, and then runs
// every check on them. A check (checks.go; machine.go, kubelet.go, leftovers.go,
// runtimes.go, reach.go, firewall.go, folders.go, access.go, certificate.go, versions.go, network.go) is a function of
// facts that makes no requests.
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
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Input selects what to check.
type Input struct {
	// Node is the connected node to check. nil: check the cluster only.
	Node *node.Node
	// Cluster is the cluster to join. nil: check the node only.
	Cluster *cluster.Cluster
	Spec    v1alpha1.Kubernetes
	// Kubelet and Kubeadm are the versions of the programs, if they are known already.
	// Default: Spec.Version.
	Kubelet, Kubeadm string
	// Own lists what an earlier run of swdt put on the node.
	Own Own
	// MayReboot allows the join to reboot the node.
	MayReboot bool
}

// Own lists what swdt put on the node, so that the checks do not report it as remains of
// other programs.
type Own struct {
	Joined   bool     // swdt has made the machine a node of a cluster, or has begun to
	Files    []string // paths
	Services []string // names
	// SourceVIP reports whether an address is reserved for kube-proxy, or swdt has begun to reserve one.
	SourceVIP bool
	// Authorities are the hashes (sha256:…) of the CAs of the cluster to which the node belongs;
	// none until kubelet has its credentials.
	Authorities []string
}

// Report is the result of the checks.
type Report struct {
	NodeName string            `json:"nodeName"` // the name of the Node object
	Windows  string            `json:"windows"`  // ltsc2022; "" if Kubernetes does not support this build
	Checks   []string          `json:"checks"`   // the checks that were made
	Skipped  []Skipped         `json:"skipped"`
	Problems []finding.Problem `json:"problems"` // errors first
}

// Skipped is a check that could not be made.
type Skipped struct {
	Check string `json:"check"`
	Why   string `json:"why"`
}

// Failed reports whether there is an error among the problems.
func (r Report) Failed() bool { return finding.Has(r.Problems, finding.Error) }

// Run makes all checks that the input allows. It returns an error only if the facts could not
// be gathered at all, such as when the node was lost or ctx has ended.
func Run(ctx context.Context, in Input) (Report, error) {
	f := facts{
		spec: in.Spec, own: in.Own, mayReboot: in.MayReboot,
		kubelet: cmp.Or(in.Kubelet, in.Spec.Version), kubeadm: cmp.Or(in.Kubeadm, in.Spec.Version),
	}
	// The cluster is asked first, since it determines the addresses that the node must reach.
	if in.Cluster != nil {
		c, err := gatherCluster(ctx, in)
		if err != nil {
			return Report{}, fmt.Errorf("look at the cluster: %w", err)
		}
		f.cluster = c
	}
	if f.cluster != nil {
		if err := gatherCertificates(ctx, in, &f); err != nil {
			return Report{}, fmt.Errorf("look at the cluster: %w", err)
		}
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

// report runs every applicable check on the facts.
func (f *facts) report(ignore []string) Report {
	r := Report{NodeName: f.nodeName(), Windows: f.windowsName(), Checks: []string{}, Problems: []finding.Problem{}}
	reported := map[string]bool{} // keys: the evidence of problems that were reported
	for _, c := range Checks() {
		if c.Where == finding.OnNode && f.node == nil || c.Where == finding.OnCluster && f.cluster == nil {
			continue
		}
		if err := c.unknown(f); err != nil {
			r.Skipped = append(r.Skipped, Skipped{c.ID, err.Error()})
			// Several checks may need the same fact. If that fact is unknown, only one of them
			// reports it.
			if p, worth := c.unknownProblem(err); worth && !reported[p.Evidence] {
				reported[p.Evidence] = true
				r.Problems = append(r.Problems, p)
			}
			continue
		}
		r.Checks = append(r.Checks, c.ID)
		for _, found := range c.look(f) {
			r.Problems = append(r.Problems, UnlessIgnored(c.problem(found), ignore))
		}
	}
	finding.Sort(r.Problems)
	return r
}

// unknownProblem returns the problem that a check could not be made. It returns false if the
// machine cannot supply the fact at all, or if another check reports the cause.
func (c Check) unknownProblem(err error) (finding.Problem, bool) {
	if errors.Is(err, fault.ErrNotSupported) || errors.Is(err, errReportedElsewhere) {
		return finding.Problem{}, false
	}
	return c.problem(finding.New(err.Error(), "could not look at %s", c.Looks).As(finding.Warning)), true
}

// problem returns a finding of the check.
func (c Check) problem(f finding.Finding) finding.Problem {
	return finding.Problem{Check: c.ID, Where: c.Where, Finding: f}
}

// UnlessIgnored makes an error a warning if the node file ignores the check. Names of checks
// are compared without case, as in kubeadm.
func UnlessIgnored(p finding.Problem, ignore []string) finding.Problem {
	wanted := slices.ContainsFunc(ignore, func(id string) bool {
		return strings.EqualFold(id, "all") || strings.EqualFold(id, p.Check)
	})
	if wanted && p.Severity == finding.Error {
		p.Severity, p.Ignored = finding.Warning, true
	}
	return p
}
