// Package combination knows combinations of Windows with other programs that are known not to work, or that a project
// does not support. `swdt up`, `join`, `network install`, preflight and doctor all ask it.
//
//   - table.go: the combinations, with their sources
//   - combination.go: comparing a machine with the table
//   - subject.go: reading a machine's part from other types
package combination

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Check is the name of the preflight check and of the doctor's rule for combinations.
const Check = "combinations"

// Row is a combination that is known not to work. All its conditions must hold; one that is unset holds always.
type Row struct {
	ID      string
	Windows Windows
	Network Network
	// Snapshotter is containerd's snapshotter.
	Snapshotter string
	// Containerd and Kubernetes are the ranges of versions; none: all.
	Containerd, Kubernetes []Range
	// HyperV holds if containerd is configured to isolate pods by Hyper-V, DefaultSandbox if the image of pod sandboxes is
	// the one that containerd chooses.
	HyperV, DefaultSandbox bool

	What    string   // the consequence
	Remedy  string   // how to avoid it
	Sources []string // URLs
	Seen    string   // the day on which the sources were read, such as 2026-11-29
}

// Windows are builds of Windows.
type Windows struct {
	Build        int // such as 26100; 0: all
	From, Before int // revisions of the build; Before 0: no end
	// Client selects Windows 11 from Build on instead of Windows Server of Build.
	Client bool
}

// Network is a pod network.
type Network struct {
	Name    string // such as calico; "": any
	Overlay bool   // it makes an HNS network of the type Overlay, as VXLAN needs
	BGP     bool
}

// Range is the versions from From on that are older than Before. An empty bound does not exist.
type Range struct{ From, Before string }

// Subject is a node as it is or as it is planned. A row with a condition on an unset field does not apply.
type Subject struct {
	Build          string // such as 26100.1742
	Product        string // such as Windows Server 2025 Datacenter
	Network        Network
	Snapshotter    string
	Containerd     string // its version
	Kubernetes     string // the version of kubelet and kube-proxy
	HyperV         bool
	DefaultSandbox bool
}

// Find returns a warning for each row of the table that applies to the subject.
func Find(s Subject) (all []finding.Finding) {
	for _, r := range Table() {
		if r.applies(s) {
			all = append(all, finding.Finding{Severity: finding.Warning, What: r.What,
				Evidence: r.evidence(s) + "; see " + strings.Join(r.Sources, ", "), Remedy: r.Remedy})
		}
	}
	return all
}

// Problems returns what Find finds, as problems of a node.
func Problems(s Subject) (all []finding.Problem) {
	for _, f := range Find(s) {
		all = append(all, finding.Problem{Check: Check, Where: finding.OnNode, Finding: f})
	}
	return all
}

// DependsOnWindows reports whether another build of Windows than the subject's would find something else.
func DependsOnWindows(s Subject) bool {
	return slices.ContainsFunc(Table(), func(r Row) bool {
		depends := r.Windows.Build != 0
		r.Windows = Windows{}
		return depends && r.applies(s)
	})
}

func (r Row) applies(s Subject) bool {
	return r.Windows.has(s) && r.Network.is(s.Network) &&
		(r.Snapshotter == "" || r.Snapshotter == s.Snapshotter) &&
		within(r.Containerd, s.Containerd) && within(r.Kubernetes, s.Kubernetes) &&
		(!r.HyperV || s.HyperV) && (!r.DefaultSandbox || s.DefaultSandbox)
}

// has reports whether the subject runs one of the builds. A build without a revision is of no range of revisions.
func (w Windows) has(s Subject) bool {
	if w.Build == 0 {
		return true
	}
	buildText, revisionText, _ := strings.Cut(s.Build, ".")
	build, err := strconv.Atoi(buildText)
	if err != nil {
		return false
	}
	client := s.Product != "" && !strings.Contains(s.Product, "Server")
	if w.Client {
		return client && build >= w.Build
	}
	if client || build != w.Build {
		return false
	}
	if w.From == 0 && w.Before == 0 {
		return true
	}
	revision, err := strconv.Atoi(revisionText)
	return err == nil && revision >= w.From && (w.Before == 0 || revision < w.Before)
}

func (n Network) is(of Network) bool {
	return (n.Name == "" || n.Name == of.Name) && (!n.Overlay || of.Overlay) && (!n.BGP || of.BGP)
}

func within(all []Range, text string) bool {
	if len(all) == 0 {
		return true
	}
	v, err := version.ParseGeneric(text)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(all, func(r Range) bool {
		return (r.From == "" || v.AtLeast(version.MustParseGeneric(r.From))) &&
			(r.Before == "" || v.LessThan(version.MustParseGeneric(r.Before)))
	})
}

// evidence returns the parts of the subject that the row has conditions on.
func (r Row) evidence(s Subject) string {
	var parts []string
	add := func(about bool, format string, args ...any) {
		if about {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(r.Windows.Build != 0, "Windows build %s", s.Build)
	add(r.Network != Network{}, "pod network %s", s.Network)
	add(r.Snapshotter != "", "snapshotter %s", s.Snapshotter)
	add(len(r.Containerd) > 0, "containerd %s", strings.TrimPrefix(s.Containerd, "v"))
	add(len(r.Kubernetes) > 0, "Kubernetes %s", strings.TrimPrefix(s.Kubernetes, "v"))
	add(r.HyperV, "pods isolated by Hyper-V")
	return strings.Join(parts, ", ")
}

// String returns the network for people, such as "calico (overlay)".
func (n Network) String() string {
	switch {
	case n.BGP:
		return n.Name + " (BGP)"
	case n.Overlay:
		return n.Name + " (overlay)"
	}
	return n.Name
}
