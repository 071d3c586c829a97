package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster/documents"
	"github.com/swdt-dev/swdt/internal/cluster/placement"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// nodeRules are about pods and the Node objects that the manifests have, as those of a cluster do.
func nodeRules() []Rule {
	const taintAt = "https://kubernetes.io/docs/concepts/windows/user-guide/#ensuring-os-specific-workloads-land-on-the-appropriate-container-host"
	const node = "apiVersion: v1\nkind: Node\nmetadata: {name: win-1, labels: {kubernetes.io/os: windows}}\n" +
		"spec: {taints: [{key: os, value: windows, effect: NoSchedule}]}\n---\n"
	return []Rule{{
		ID: "place-no-node", whole: true, Severity: finding.Error, Effect: Fails,
		Title:  "a Windows node takes the pods",
		Means:  "the pods are not scheduled: no Windows node has the labels that they select, or each has a taint that they do not tolerate. Taints for a state, such as a cordon, do not count.",
		Remedy: "write the toleration or the label, or change the nodes", Source: taintAt, object: noNode,
		Bad:  node + pod("metadata: {name: web}", ""),
		Good: node + pod("metadata: {name: web}", "tolerations: [{key: os, value: windows}]"),
	}}
}

func noNode(o *object, m *manifests, found report) {
	p := o.pods
	if len(m.nodes) == 0 || p == nil || p.isPatch() || p.system.name != corev1.Windows || p.spec.NodeName != "" || o.isFinished() {
		return
	}
	spec := m.withClass(p.spec)
	var why []string
	tainted := true
	for _, n := range m.nodes {
		if !m.spend(comparedOfNode) {
			return
		}
		reason := placement.Refuses(n, spec)
		if reason == "" {
			return
		}
		tainted = tainted && reason != placement.OtherLabels
		if len(why) < mostPlaces {
			why = append(why, n.Name+" "+reason)
		}
	}
	s := seen{at: p.path}
	if !tainted || o.kind == "DaemonSet" { // an autoscaler may make such nodes, and a DaemonSet may be for none
		s.severity = finding.Warning
	}
	s.what = fmt.Sprintf("none of %s takes the pods: %s", finding.Several(len(m.nodes), "Windows node"), strings.Join(why, "; "))
	found(s)
}

// comparedOfNode is the weight of a look at a node, in comparisons.
const comparedOfNode = 20

// isFinished reports whether the object is a Job or a Pod that has ended.
func (o *object) isFinished() bool {
	phase := documents.Text(o.node, "status", "phase")
	return phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed) ||
		o.kind == "Job" && documents.Text(o.node, "status", "completionTime") != ""
}

// withClass returns a PodSpec with what its RuntimeClass adds, as the API server does.
func (m *manifests) withClass(spec corev1.PodSpec) corev1.PodSpec {
	if spec.RuntimeClassName == nil || m.classes[*spec.RuntimeClassName] == nil {
		return spec
	}
	class := m.classes[*spec.RuntimeClassName]
	selector := map[string]string{}
	maps.Copy(selector, class.NodeSelector)
	maps.Copy(selector, spec.NodeSelector)
	spec.NodeSelector, spec.Tolerations = selector, append(slices.Clip(spec.Tolerations), class.Tolerations...)
	return spec
}
