package lint

import (
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Effect describes what becomes of something that a manifest says.
type Effect string

// The effects.
const (
	Rejected Effect = "rejected" // the API server refuses the object, or its pods
	Fails    Effect = "fails"    // the pods are not scheduled, or do not start
	Ignored  Effect = "ignored"  // it has no effect
	Changed  Effect = "changed"  // it means something else than on Linux
	Noted    Effect = "noted"    // it works, with a difference worth knowing
)

// Rule is a demand on manifests.
type Rule struct {
	ID       string
	Title    string // what is expected, as in "the pods are placed on Windows nodes"
	Severity finding.Severity
	Effect   Effect
	Means    string // what happens otherwise
	Remedy   string
	Source   string // where the fact was read
	Since    string // the first version of Kubernetes with it, such as 1.34; "": all that are supported
	Until    string // the first version without it; "": none
	// Bad is an example that the rule finds, Good one in which no rule finds an error or a warning: fields of a Windows
	// pod's spec, fields of its container if they are indented, or whole manifests.
	Bad, Good string

	// whole marks a rule about something that pods lack. It looks at whole pods alone, and not at a patch of kustomize.
	whole bool

	aboutStatus bool // the rule looks at what a cluster reports

	// fix changes a manifest so that the finding is gone, and nothing else of what Windows does with it; nil: the author
	// has to choose.
	fix *fix

	windows func(*pods, report)               // looks at pods for Windows
	pods    func(*pods, report)               // looks at all pods
	object  func(*object, *manifests, report) // looks at any object
}

// holds reports whether the rule holds for a version of Kubernetes; "": a version that is not known.
func (r Rule) holds(kubernetes string) bool {
	at, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return true
	}
	since, until := version.MajorMinor(0, 0), version.MajorMinor(math.MaxInt32, 0)
	if r.Since != "" {
		since = version.MustParseGeneric(r.Since)
	}
	if r.Until != "" {
		until = version.MustParseGeneric(r.Until)
	}
	return at.AtLeast(since) && at.LessThan(until)
}

// seen is something that a rule has found. The rule has the values of empty fields.
type seen struct {
	at       path
	what     string
	severity finding.Severity
	effect   Effect
	remedy   string
	evidence string // "": the field with its value
	// byHand reports that the rule's fix does not fit.
	byHand bool
}

type report func(seen)

// Rules returns all rules, in the order of the page.
func Rules() []Rule {
	var all []Rule
	for _, some := range [][]Rule{fileRules(), apiRules(), placingRules(), nodeRules(), securityRules(), hostProcessRules(), storageRules(), mountRules(), resourceRules(),
		lifecycleRules(), networkRules(), serviceRules(), statusRules(), ignoreRules()} {
		all = append(all, some...)
	}
	return all
}

// The parts of a Windows pod in which the rules find nothing.
const (
	exampleHead = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n"
	exampleOS   = "  os: {name: windows}\n"
	exampleNode = "  nodeSelector: {kubernetes.io/os: windows}\n"
	exampleList = "  containers:\n  - name: web\n    image: registry.example/web:ltsc2022\n    resources: {limits: {memory: 500Mi}}\n"
)

// Manifest returns an example of a rule as a whole manifest.
func Manifest(example string) string {
	switch {
	case strings.HasPrefix(example, "apiVersion:"):
		return example
	case strings.HasPrefix(example, " "):
		return exampleHead + exampleOS + exampleNode + exampleList + indented(example, "  ")
	}
	text := exampleHead + indented(example, "  ")
	for _, part := range []struct{ key, text string }{{"os:", exampleOS}, {"nodeSelector:", exampleNode}, {"containers:", exampleList}} {
		if !strings.HasPrefix(example, part.key) && !strings.Contains(example, "\n"+part.key) {
			text += part.text
		}
	}
	return text
}

// indented returns a text whose lines begin with a prefix, and that ends with a newline.
func indented(text, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+prefix) + "\n"
}

// The places of the facts.
const (
	kubernetesAt = "https://github.com/kubernetes/kubernetes/blob/v1.36.3/"
	validationAt = kubernetesAt + "pkg/apis/core/validation/validation.go"
	containerdAt = "https://github.com/containerd/containerd/blob/v2.4.2/"
	hcsshimAt    = "https://github.com/microsoft/hcsshim/blob/v0.15.0-rc.4/"
	introAt      = "https://kubernetes.io/docs/concepts/windows/intro/"
	kepAt        = "https://github.com/kubernetes/enhancements/blob/master/keps/sig-windows/1981-windows-privileged-container-support/README.md"
)
