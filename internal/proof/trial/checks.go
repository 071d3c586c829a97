package trial

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/maruel/natural"
	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// DefaultTaints are the keys of taints of nodes on which the specs do not have to run. A Linux node with
// such a taint keeps pods without a node selector away, so that they land on Windows nodes.
const DefaultTaints = "os,node-role.kubernetes.io/control-plane,node-role.kubernetes.io/master"

// facts are the input of the checks.
type facts struct {
	nodes      []cluster.Node
	kubernetes string // the API server's version
	binary     suite.Binary
	kubectl    bool // kubectl is on this machine
}

// check returns what may make the results of a run worthless, the worst first. It makes no request.
func check(f facts) []finding.Problem {
	all := slices.Concat(f.version(), f.windows(), f.builds(), f.linux(), f.programs())
	finding.Sort(all)
	return all
}

func problem(name string, severity finding.Severity, where finding.Side, f finding.Finding) finding.Problem {
	return finding.Problem{Check: name, Where: where, Finding: f.As(severity)}
}

// version compares the minor versions of e2e.test and the API server, since e2e.test is made for API
// servers of its own version. One minor version of difference is a warning, more is an error.
func (f facts) version() []finding.Problem {
	ours, ok := minor(f.binary.Version)
	theirs, also := minor(f.kubernetes)
	if !ok || !also || ours == theirs {
		return nil
	}
	severity := finding.Error
	if ours-theirs == 1 || theirs-ours == 1 {
		severity = finding.Warning
	}
	return []finding.Problem{problem("version", severity, finding.OnMachine,
		finding.New(f.binary.Path, "e2e.test is of Kubernetes %s, but the cluster has %s", f.binary.Version, f.kubernetes).
			Remedied("leave --binary out, to use the e2e.test of the cluster's version"))}
}

// minor returns the minor version of Kubernetes in a version such as v1.36.3-rc.1+build.
func minor(version string) (int, bool) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 || parts[0] != "1" {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimRight(parts[1], "+"))
	return n, err == nil
}

func (f facts) ofSystem(system string) (nodes []cluster.Node) {
	for _, n := range f.nodes {
		if n.Labels[corev1.LabelOSStable] == system {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b cluster.Node) int { return natural.Compare(a.Name, b.Name) })
	return nodes
}

// windows checks that pods can be scheduled on a Windows node.
func (f facts) windows() []finding.Problem {
	all := f.ofSystem("windows")
	if len(all) == 0 {
		return []finding.Problem{problem("windows-nodes", finding.Error, finding.OnCluster,
			finding.New("", "the cluster has no Windows node").Remedied("`swdt join` adds one"))}
	}
	var found []finding.Problem
	usable := 0
	for _, n := range all {
		taint := blocking(n)
		switch {
		case !n.Ready:
			found = append(found, problem("windows-nodes", finding.Warning, finding.OnCluster,
				finding.New(n.State(), "Windows node %s is not Ready", n.Name).Remedied("`swdt doctor` shows what is wrong on it")))
		case n.Cordoned:
			found = append(found, problem("windows-nodes", finding.Warning, finding.OnCluster,
				finding.New("", "Windows node %s is cordoned", n.Name).
					Remedied("%s lets it run pods", remedy.KubectlCommand("uncordon", n.Name))))
		case taint != "":
			found = append(found, problem("windows-taints", finding.Warning, finding.OnCluster,
				finding.New(taint, "Windows node %s has a taint that the pods of most specs do not tolerate", n.Name).
					Remedied("%s removes it for the time of the run", remedy.KubectlCommand("taint", "nodes", n.Name, taint+"-"))))
		default:
			usable++
		}
	}
	if usable > 0 {
		return found
	}
	for i := range found {
		found[i].Severity = finding.Error
	}
	return found
}

// blocking returns the first taint that keeps pods away from a node; "" if there is none.
func blocking(n cluster.Node) string {
	for _, t := range n.Taints {
		// A node that has just become Ready still has the taint not-ready, for a moment.
		if t.Effect != corev1.TaintEffectPreferNoSchedule && t.Key != corev1.TaintNodeNotReady {
			return t.ToString()
		}
	}
	return ""
}

// builds checks that the test images have a variant for each Windows build.
func (f facts) builds() (found []finding.Problem) {
	for _, n := range f.ofSystem("windows") {
		parts := strings.Split(n.KernelVersion, ".")
		if len(parts) < 3 || slices.Contains([]string{"17763", "20348", "26100"}, parts[2]) {
			continue
		}
		found = append(found, problem("windows-build", finding.Warning, finding.OnCluster,
			finding.New(n.KernelVersion, "Kubernetes' test images have no variant for the Windows build of node %s", n.Name).
				Remedied("they exist for Windows Server 2019, 2022 and 2025; `swdt cluster check` shows whether one starts")))
	}
	return found
}

// linux checks that pods without a node selector land on Windows nodes.
func (f facts) linux() (found []finding.Problem) {
	for _, n := range f.ofSystem("linux") {
		kept := slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool {
			return t.Effect != corev1.TaintEffectPreferNoSchedule
		})
		if kept || n.Cordoned || !n.Ready {
			continue
		}
		found = append(found, problem("linux-nodes", finding.Warning, finding.OnCluster,
			finding.New("", "pods without a node selector can land on Linux node %s, so a spec can pass without Windows",
				n.Name).Remedied("for the time of the run, taint it: %s",
				remedy.KubectlCommand("taint", "nodes", n.Name, "os=linux:NoSchedule"))))
	}
	return found
}

// programs checks what e2e.test needs on this machine.
func (f facts) programs() []finding.Problem {
	if f.kubectl {
		return nil
	}
	return []finding.Problem{problem("kubectl", finding.Info, finding.OnMachine,
		finding.New("", "kubectl is not in PATH, so the specs that run it fail").Remedied("install it"))}
}

func hasKubectl() bool {
	_, err := exec.LookPath("kubectl")
	return err == nil
}
