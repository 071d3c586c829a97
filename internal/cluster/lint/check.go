package lint

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Finding is something in a manifest that Windows nodes do not do.
type Finding struct {
	Rule   string `json:"rule"`
	Effect Effect `json:"effect"`
	finding.Finding
	// Since is the first version of Kubernetes with the effect, such as 1.34; "": all that are supported.
	Since string `json:"since"`
	// Source is where the fact was read.
	Source string `json:"source"`
	File   string `json:"file"`   // "": it is an object of a cluster
	Line   int    `json:"line"`   // from 1; 0: of a cluster
	Column int    `json:"column"` // from 1; 0: of a cluster
	Object string `json:"object"` // such as DaemonSet kube-system/csi-smb-node-win
	Field  string `json:"field"`  // such as spec.template.spec.hostNetwork
	// Ignored is the reason why the manifest's author ignores the finding; "": it counts.
	Ignored string `json:"ignored"`
	// Fixable reports that Fix changes the manifest so that the finding is gone.
	Fixable bool `json:"fixable"`

	repair repair
}

// Options are how manifests are read.
type Options struct {
	// Kubernetes is the version of the cluster, such as 1.36.3; "": rules of all supported versions hold.
	Kubernetes string
	// AssumeWindows makes pods whose system the manifests do not show pods for Windows.
	AssumeWindows bool
}

// mostFindings bounds a report, since a hostile file can have millions.
const mostFindings = 10_000

// Check holds all objects that were read against all rules.
func (r *Reader) Check(o Options) Report {
	reading := r.read()
	report := reading.report(reading.check(o))
	for i, f := range report.Findings {
		report.Findings[i].Fixable = f.Fixable && !r.unfixable[nameOf(f)]
	}
	report.Texts, report.Fixed = r.files(), append([]Fixed{}, r.fixed...)
	return report
}

// check holds the objects against all rules.
func (r *reading) check(o Options) checking {
	rules, known := Rules(), map[string]bool{}
	for _, rule := range rules {
		known[rule.ID] = true
	}
	rules = slices.DeleteFunc(rules, func(r Rule) bool { return !r.holds(o.Kubernetes) })
	classes := classSystems(r.objects)
	for _, one := range r.objects {
		one.readNotes(known)
		if one.pods == nil {
			continue
		}
		one.pods.system = systemOf(one.pods, classes)
		if o.AssumeWindows && one.pods.system.name == "" {
			one.pods.system = system{name: corev1.Windows, assumed: true}
		}
	}
	c := checking{manifests: newManifests(r.objects)}
	c.addBroken(r.broken)
	for _, one := range r.objects {
		for _, rule := range rules {
			if one.checked == nothing || one.checked == status && !rule.aboutStatus {
				continue
			}
			c.check(one, rule)
		}
	}
	if c.left < 0 {
		r.skip("the rules about several objects", 0, "too many objects would have to be compared with each other, so some Services, pods and nodes were not")
	}
	return c
}

// checking is one run of the rules.
type checking struct {
	*manifests
	found []Finding
	more  int // findings that were left out
}

func (c *checking) check(o *object, rule Rule) {
	found := func(s seen) { c.add(o, rule, s) }
	if rule.object != nil {
		rule.object(o, c.manifests, found)
	}
	if o.pods == nil || rule.whole && o.pods.isPatch() {
		return
	}
	if rule.pods != nil {
		rule.pods(o.pods, found)
	}
	if rule.windows != nil && o.pods.system.name == corev1.Windows {
		rule.windows(o.pods, found)
	}
}

func (c *checking) add(o *object, rule Rule, s seen) {
	if len(c.found) == mostFindings {
		c.more++
		return
	}
	named, value := o.find(s.at)
	line, column := named.Line, named.Column
	if o.file == "" {
		line, column = 0, 0
	}
	repair := repairOf(o, rule, s)
	c.found = append(c.found, Finding{
		Rule: rule.ID, Effect: cmp.Or(s.effect, rule.Effect), Since: rule.Since, Source: rule.Source,
		Finding: finding.New(cmp.Or(s.evidence, evidenceOf(s.at, value)), "%s", s.what).As(cmp.Or(s.severity, rule.Severity)).Remedied("%s", cmp.Or(s.remedy, rule.Remedy)),
		File:    o.file, Line: line, Column: column, Object: o.String(), Field: s.at.String(), Ignored: o.ignored(rule.ID, s.at),
		Fixable: repair.object != nil, repair: repair,
	})
}

// addBroken adds the documents that are no YAML.
func (c *checking) addBroken(all []broken) {
	rule := fileRules()[0]
	for _, b := range all {
		if len(c.found) == mostFindings {
			c.more++
			continue
		}
		c.found = append(c.found, Finding{
			Rule: rule.ID, Effect: rule.Effect, Source: rule.Source, File: b.file, Line: b.line, Column: 1,
			Finding: finding.New("", "the document is not YAML: %v", b.err).As(rule.Severity).Remedied("%s", rule.Remedy),
		})
	}
}

// evidenceOf returns a field with its value if that is short, such as "privileged: true".
func evidenceOf(at path, value *yaml.Node) string {
	if len(at) == 0 || value == nil || strings.HasPrefix(at[len(at)-1], "[") {
		return ""
	}
	if value.Kind != yaml.ScalarNode {
		return ""
	}
	return at[len(at)-1] + ": " + shortened(value.Value)
}

// shortened returns the beginning of a text, on one line.
func shortened(text string) string {
	const most = 100
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// sorted orders findings by severity, rule and place.
func sorted(all []Finding) []Finding {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(a.Severity.Compare(b.Severity), strings.Compare(a.Rule, b.Rule), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return all
}
