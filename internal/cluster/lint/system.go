package lint

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster/documents"
)

// system is the operating system that pods are for, as far as the manifests show it.
type system struct {
	name corev1.OSName // "": unknown
	// by names the field that shows it, for people.
	by string
	// assumed reports that --assume-windows names the system, and no manifest.
	assumed bool
	// placed reports that the scheduler puts the pods on nodes of that system alone.
	placed bool
	// guessed reports that a name of an image alone shows the system, or that fields contradict each other.
	guessed bool
	// maybe reports that something else than the system chooses the nodes, such as a label of a node pool.
	maybe bool
}

// why returns for people how the system is known.
func (s system) why() string {
	if s.assumed {
		return "the pods are for Windows, as --assume-windows demands"
	}
	return s.by + " shows that the pods are for Windows"
}

// legacyOS is the label that kubernetes.io/os replaced, which nodes still have.
const legacyOS = "beta.kubernetes.io/os"

// systemOf returns what pods are for. classes are the RuntimeClasses of the manifests that choose a system.
func systemOf(p *pods, classes map[string]corev1.OSName) system {
	var field corev1.OSName
	if p.spec.OS != nil {
		field = p.spec.OS.Name
	}
	placed, by := placedOn(p, classes)
	maybe := p.spec.NodeName != "" || len(p.spec.NodeSelector) > 0 || p.spec.Affinity != nil && p.spec.Affinity.NodeAffinity != nil
	switch {
	case field != "":
		return system{name: field, by: "spec.os.name", placed: placed == field, guessed: placed != "" && placed != field, maybe: maybe && placed == ""}
	case placed != "":
		return system{name: placed, by: by, placed: true}
	case p.isHostProcess():
		return system{name: corev1.Windows, by: "hostProcess", maybe: maybe}
	case p.hasWindowsOptions():
		return system{name: corev1.Windows, by: "windowsOptions", maybe: maybe}
	}
	for _, c := range p.containers() {
		if isWindowsImage(c.Image) {
			return system{name: corev1.Windows, by: "the image " + c.Image, guessed: true, maybe: maybe}
		}
	}
	return system{maybe: maybe}
}

func (p *pods) hasWindowsOptions() bool {
	return p.has("securityContext", "windowsOptions") != nil || slices.ContainsFunc(p.containers(), func(c container) bool {
		return p.object.at(c.path.child("securityContext", "windowsOptions")) != nil
	})
}

// placedOn returns the system on whose nodes alone the scheduler puts pods; "": on nodes of several.
func placedOn(p *pods, classes map[string]corev1.OSName) (name corev1.OSName, by string) {
	for _, label := range []string{corev1.LabelOSStable, legacyOS} {
		if value := p.spec.NodeSelector[label]; value != "" {
			return corev1.OSName(value), "nodeSelector"
		}
	}
	if selectsWindows(p.spec.NodeSelector) {
		return corev1.Windows, "nodeSelector"
	}
	if name := affinityOf(p.spec.Affinity); name != "" {
		return name, "affinity"
	}
	if class := p.spec.RuntimeClassName; class != nil {
		if name := classes[*class]; name != "" {
			return name, "RuntimeClass " + *class
		}
	}
	return "", ""
}

// selectsWindows reports whether labels that only Windows nodes have choose the nodes: the build, and those of AKS and GKE.
func selectsWindows(labels map[string]string) bool {
	return labels[corev1.LabelWindowsBuild] != "" || strings.HasPrefix(labels["kubernetes.azure.com/os-sku"], "Windows") ||
		strings.HasPrefix(labels["cloud.google.com/gke-os-distribution"], "windows")
}

// affinityOf returns the system that each term of a required node affinity demands; "": none, or several.
func affinityOf(a *corev1.Affinity) (name corev1.OSName) {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for i, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		demanded := demandedBy(term)
		if i > 0 && demanded != name || demanded == "" {
			return ""
		}
		name = demanded
	}
	return name
}

func demandedBy(term corev1.NodeSelectorTerm) corev1.OSName {
	for _, e := range term.MatchExpressions {
		if e.Key == corev1.LabelWindowsBuild && (e.Operator == corev1.NodeSelectorOpIn || e.Operator == corev1.NodeSelectorOpExists) {
			return corev1.Windows
		}
		if e.Key != corev1.LabelOSStable && e.Key != legacyOS || len(e.Values) != 1 {
			continue
		}
		switch value := corev1.OSName(e.Values[0]); {
		case e.Operator == corev1.NodeSelectorOpIn:
			return value
		case e.Operator == corev1.NodeSelectorOpNotIn && value == corev1.Linux:
			return corev1.Windows
		case e.Operator == corev1.NodeSelectorOpNotIn && value == corev1.Windows:
			return corev1.Linux
		}
	}
	return ""
}

// classSystems returns the systems that the RuntimeClasses of manifests choose.
func classSystems(all []*object) map[string]corev1.OSName {
	classes := map[string]corev1.OSName{}
	for _, o := range all {
		if o.kind != "RuntimeClass" {
			continue
		}
		if selector := documents.Texts(documents.Child(documents.Child(o.node, "scheduling"), "nodeSelector")); selector[corev1.LabelOSStable] != "" {
			classes[o.name] = corev1.OSName(selector[corev1.LabelOSStable])
		}
	}
	return classes
}

// isWindowsImage reports whether the name of an image shows that it is for Windows: the base images of Microsoft, and the
// words of their tags.
func isWindowsImage(image string) bool {
	image = strings.ToLower(image)
	return slices.ContainsFunc([]string{"windows/servercore", "windows/server:", "dotnet/framework", "windows-host-process-containers",
		"windowsservercore", "nanoserver", "ltsc2019", "ltsc2022", "ltsc2025", "windows-amd64", "windows-1809", "windows-2019", "windows-2022",
		"windows-2025"}, func(word string) bool { return strings.Contains(image, word) })
}
