package lint

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

const selectorRemedy = "write nodeSelector: {kubernetes.io/os: windows}"

// placingRules are about the nodes that pods run on.
func placingRules() []Rule {
	const admission = kubernetesAt + "pkg/kubelet/lifecycle/predicate.go"
	return []Rule{
		{
			ID: "place-no-selector", whole: true, Severity: finding.Error, Effect: Fails, fix: &fix{below: path{"nodeSelector", corev1.LabelOSStable}, value: string(corev1.Windows)},
			Title: "the pods are placed on Windows nodes",
			Means: "the scheduler does not look at spec.os.name, nor at images. On a Linux node, kubelet refuses the pods with " +
				"PodOSNotSupported, or the image has no variant for the node, and controllers make more of them.",
			Remedy: selectorRemedy, Source: admission, windows: noSelector,
			Bad: "nodeSelector: {}\nos: {name: windows}", Good: "nodeSelector: {kubernetes.io/os: windows}\nos: {name: windows}",
		},
		{
			ID: "place-label-instead-of-field", Severity: finding.Warning, Effect: Fails,
			Title:  "no label of the pods names another operating system",
			Means:  "kubelet refuses pods whose label kubernetes.io/os differs from its own, with PodOSSelectorNodeLabelDoesNotMatch. The label selects no node.",
			Remedy: "remove the label, and write nodeSelector and spec.os.name", Source: admission, windows: systemLabel,
			Bad: pod("metadata: {name: web, labels: {kubernetes.io/os: linux}}", ""), Good: pod("metadata: {name: web, labels: {app: web}}", ""),
		},
		{
			ID: "place-os-field-missing", whole: true, Severity: finding.Info, Effect: Noted, fix: &fix{below: path{"os", "name"}, value: string(corev1.Windows)},
			Title: "Windows pods have spec.os.name: windows",
			Means: "the pods run. But the API server does not check them for fields that are for Linux alone, and a namespace with the " +
				"Pod Security standard restricted demands fields that do nothing on Windows.",
			Remedy: "write os: {name: windows}", Source: introAt + "#compatibility-v1-pod-spec-containers-securitycontext", windows: noSystem,
			Bad: "os: null", Good: "os: {name: windows}",
		},
		{
			ID: "place-daemonset-both", whole: true, Severity: finding.Warning, Effect: Fails,
			Title: "a DaemonSet selects one operating system",
			Means: "its pods land on Windows nodes too, and wait there for an image that has no variant for Windows. A taint of the Windows " +
				"nodes keeps pods without a toleration away.",
			Remedy: "write nodeSelector: {kubernetes.io/os: linux}, or windows", Source: "https://kubernetes.io/docs/concepts/windows/user-guide/#ensuring-os-specific-workloads-land-on-the-appropriate-container-host",
			pods: daemonSetOfBoth,
			Bad:  daemonSet("tolerations: [{operator: Exists}]"), Good: daemonSet("nodeSelector: {kubernetes.io/os: linux}"),
		},
		{
			ID: "place-runtimeclass", Severity: finding.Info, Effect: Noted, fix: &fix{at: path{"scheduling", "nodeSelector", corev1.LabelOSStable}, value: string(corev1.Windows)},
			Title:  "a RuntimeClass for Windows places its pods on Windows nodes",
			Means:  "each of its pods needs a nodeSelector of its own; one without it can land on a Linux node, which lacks the handler.",
			Remedy: "write scheduling: {nodeSelector: {kubernetes.io/os: windows}}", Source: "https://kubernetes.io/docs/concepts/containers/runtime-class/#scheduling",
			object: runtimeClass,
			Bad:    "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: hyperv}\nhandler: runhcs-wcow-hypervisor\n",
			Good: "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: hyperv}\nhandler: runhcs-wcow-hypervisor\n" +
				"scheduling: {nodeSelector: {kubernetes.io/os: windows}}\n",
		},
	}
}

// pod returns a healthy pod with other metadata and more fields of its spec.
func pod(metadata, spec string) string {
	text := strings.Replace(exampleHead, "metadata:\n  name: web", metadata, 1) + exampleOS + exampleNode + exampleList
	if spec != "" {
		text += indented(spec, "  ")
	}
	return text
}

// daemonSet returns a DaemonSet with a field of its pods' spec.
func daemonSet(field string) string {
	return "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  template:\n    spec:\n" + indented(field, "      ") +
		"      containers:\n      - {name: agent, image: 'registry.example/agent:1'}\n"
}

func noSelector(p *pods, found report) {
	if p.system.placed {
		return
	}
	s := seen{at: p.path, what: fmt.Sprintf("%s, and nothing places them on Windows nodes", p.system.why())}
	if p.system.maybe {
		s.severity, s.byHand = finding.Warning, true
		s.what = fmt.Sprintf("%s, and what chooses their nodes does not name the system", p.system.why())
	}
	found(s)
}

func systemLabel(p *pods, found report) {
	if label := p.labels()[corev1.LabelOSStable]; label != "" && label != string(corev1.Windows) {
		found(seen{at: p.path[:len(p.path)-1].child("metadata", "labels", corev1.LabelOSStable),
			what: fmt.Sprintf("kubelet on Windows refuses pods with the label %s: %s", corev1.LabelOSStable, label)})
	}
}

func noSystem(p *pods, found report) {
	if p.spec.OS == nil && p.system.placed {
		found(seen{at: p.path, what: "spec.os.name is not set, so the API server does not check the pods as Windows pods"})
	}
}

func daemonSetOfBoth(p *pods, found report) {
	if p.object.kind != "DaemonSet" || p.system.name != "" || p.system.placed || p.system.maybe {
		return
	}
	s := seen{at: p.path, what: "the pods land on Windows nodes too, unless these have a taint", severity: finding.Info}
	for _, t := range p.spec.Tolerations {
		if t.Key == "" && t.Operator == corev1.TolerationOpExists && t.Effect != corev1.TaintEffectNoExecute {
			s.severity, s.what = finding.Warning, "the pods land on Windows nodes too: they tolerate each taint"
		}
	}
	found(s)
}

func runtimeClass(o *object, _ *manifests, found report) {
	handler := o.at(path{"handler"})
	if o.kind != "RuntimeClass" || handler == nil || !strings.HasPrefix(handler.Value, "runhcs-wcow") {
		return
	}
	if o.texts(path{"scheduling", "nodeSelector"})[corev1.LabelOSStable] == "" {
		found(seen{at: path{"handler"}, what: "the handler is for Windows, and the class does not select Windows nodes"})
	}
}
