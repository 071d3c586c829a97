// Package comparison finds what differs between nodes: everything that an update of Windows, an image or a person can change.
//
// Of compares the facts that package doctor gathers or has saved, and contacts nothing. A value that one node has and another
// lacks is a difference; a fact that is unknown on a node is a gap, and no difference.
//
//   - comparison.go: the comparison
//   - items.go, items_config.go: the facts of a node as items with a name and a value
//   - text.go: prints the report
package comparison

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/join/switches"
)

// Likelihood is how likely a difference of a kind explains a symptom that one of the nodes has.
type Likelihood string

const (
	Likely   Likelihood = "likely"
	Possible Likelihood = "possible"
	Unlikely Likelihood = "unlikely"
)

// Likelihoods returns all likelihoods, the highest first.
func Likelihoods() []Likelihood { return []Likelihood{Likely, Possible, Unlikely} }

// Kind is a kind of what can differ.
type Kind string

const (
	Windows       Kind = "windows"
	Update        Kind = "update"
	Switch        Kind = "switch"
	Driver        Kind = "driver"
	Program       Kind = "program"
	Configuration Kind = "configuration"
	Feature       Kind = "feature"
	Service       Kind = "service"
	Network       Kind = "network"
	Machine       Kind = "machine"
)

// Kinds returns all kinds in the order in which they are printed.
func Kinds() []Kind {
	return []Kind{Windows, Update, Switch, Driver, Program, Configuration, Feature, Service, Network, Machine}
}

// Difference is something that is not the same on all nodes.
type Difference struct {
	Kind       Kind       `json:"kind"`
	Name       string     `json:"name"`
	Likelihood Likelihood `json:"likelihood"`
	Values     []Value    `json:"values"` // the one that most nodes have first
	// Settings are the values that installers are known to give to a switch.
	Settings []Setting `json:"settings"`
	// Contradiction reports whether two installers give the switch different values.
	Contradiction bool `json:"contradiction"`
	// usual reports whether more nodes have the first value than any other.
	usual bool
}

// Value is a value with the nodes that have it.
type Value struct {
	Value  string   `json:"value"`
	Absent bool     `json:"absent"` // these nodes do not have it; Value is empty
	Nodes  []string `json:"nodes"`
}

// Setting is a value that an installer gives to a switch, with its source.
type Setting struct {
	Installer string `json:"installer"`
	Value     string `json:"value"`
	Since     string `json:"since"` // the month of an update, such as 2024-03B; or empty
	Means     string `json:"means"` // its meaning by the source; empty: none is published
	Source    string `json:"source"`
}

// Gap is a fact that is unknown on a node, so that the node was not compared by it.
type Gap struct {
	Node string `json:"node"`
	Fact string `json:"fact"`
	Why  string `json:"why"`
}

// Node is a node of a comparison.
type Node struct {
	Name string `json:"name"`
	// From is the file with the node's facts; empty: the node itself was asked.
	From  string `json:"from"`
	Build string `json:"build"`
	// Odd is the number of differences in which the node has not the value that most nodes have.
	Odd int `json:"odd"`
}

// Report is the result of a comparison.
type Report struct {
	Nodes       []Node       `json:"sources"`
	Compared    int          `json:"compared"` // the number of facts, differing or not
	Differences []Difference `json:"differences"`
	Gaps        []Gap        `json:"gaps"`
	// OddOneOut is the node of three or more that differs from the others in more facts than any other; or empty.
	OddOneOut string `json:"oddOneOut"`
}

// Source is a node's facts and their origin.
type Source struct {
	Facts doctor.Facts
	From  string // a file; empty: the node itself
}

// Of compares nodes. Names of nodes must differ.
func Of(sources []Source) (Report, error) {
	reader, err := newReader()
	if err != nil {
		return Report{}, err
	}
	r := Report{Nodes: []Node{}, Differences: []Difference{}, Gaps: []Gap{}}
	var all []*node
	for _, s := range sources {
		n := reader.read(s.Facts)
		all = append(all, n)
		r.Nodes = append(r.Nodes, Node{Name: n.name, From: s.From, Build: n.build})
		r.Gaps = append(r.Gaps, n.gaps...)
	}
	keys := map[key]bool{}
	for _, n := range all {
		for k := range n.items {
			keys[k] = true
		}
	}
	withoutParts(all, keys)
	for k := range keys {
		d, compared := difference(k, all)
		if compared {
			r.Compared++
		}
		if len(d.Values) > 1 {
			r.Differences = append(r.Differences, d)
		}
	}
	slices.SortFunc(r.Differences, before)
	r.count()
	return r, nil
}

// before orders differences: the likeliest explanation first, then by kind and name.
func before(a, b Difference) int {
	return cmp.Or(cmp.Compare(slices.Index(Likelihoods(), a.Likelihood), slices.Index(Likelihoods(), b.Likelihood)),
		cmp.Compare(slices.Index(Kinds(), a.Kind), slices.Index(Kinds(), b.Kind)), cmp.Compare(a.Name, b.Name))
}

// withoutParts removes the parts of an object, such as the start type of a service, if a node lacks the object: one
// difference names the object then.
func withoutParts(all []*node, keys map[key]bool) {
	objects := map[key]bool{}
	for _, n := range all {
		for object := range n.objects {
			objects[object] = true
		}
	}
	for object := range objects {
		missing := slices.ContainsFunc(all, func(n *node) bool { return n.knowsOf(object) && !n.hasObject(object) })
		for _, n := range all {
			if found, ok := n.objects[object]; missing && ok {
				n.items[object] = found
			}
		}
		if missing {
			keys[object] = true
			maps.DeleteFunc(keys, func(k key, _ bool) bool { return k.part != "" && k.object() == object })
		}
	}
}

// difference collects the values of a key. It reports whether two nodes or more could be compared.
func difference(k key, all []*node) (d Difference, compared bool) {
	d = Difference{Kind: k.kind, Name: spelling(k, all).String(), Likelihood: Unlikely, Values: []Value{}, Settings: []Setting{}}
	known, builds := 0, []int{}
	var forms []string // of the values
	for _, n := range all {
		if !n.knowsOf(k) {
			continue
		}
		known++
		found, has := n.items[k]
		if has && slices.Index(Likelihoods(), found.likelihood) < slices.Index(Likelihoods(), d.Likelihood) {
			d.Likelihood = found.likelihood
		}
		i := 0
		for i < len(d.Values) && (d.Values[i].Absent == has || forms[i] != found.form()) {
			i++
		}
		if i == len(d.Values) {
			d.Values, forms = append(d.Values, Value{Value: found.value, Absent: !has}), append(forms, found.form())
		}
		d.Values[i].Nodes = append(d.Values[i].Nodes, n.name)
		if build := n.number(); build != 0 && !slices.Contains(builds, build) {
			builds = append(builds, build)
		}
	}
	slices.SortStableFunc(d.Values, func(a, b Value) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })
	for _, v := range d.Values {
		slices.SortFunc(v.Nodes, natural.Compare)
	}
	d.usual = len(d.Values) > 1 && len(d.Values[0].Nodes) > len(d.Values[1].Nodes)
	if len(d.Values) > 1 && k.kind == Switch {
		d.settings(k, builds)
	}
	return d, known > 1
}

// spelling returns a folded key as the first node that has it spells it, and the object of a part as the first one that has
// the object does.
func spelling(k key, all []*node) key {
	spelled, object := k, k.object()
	for _, n := range slices.Backward(all) {
		if i, ok := n.items[k]; ok {
			spelled = i.spelled
		}
	}
	for _, n := range slices.Backward(all) {
		if i, ok := n.objects[object]; ok {
			spelled.name = i.spelled.name
		}
	}
	return spelled
}

// settings adds the installers that set the switch on one of these builds of Windows, or on any build if none sets it on these.
// Only installers that set it on the same build contradict each other.
func (d *Difference) settings(k key, builds []int) {
	slices.Sort(builds)
	for _, build := range builds {
		d.install(switches.Known(k.name, k.part, build))
	}
	if len(d.Settings) == 0 {
		d.install(switches.Known(k.name, k.part, 0))
	}
}

// install adds settings of one build that d does not have.
func (d *Difference) install(known []switches.Setting) {
	for _, s := range known {
		setting := Setting{Installer: s.Installer, Value: s.Value, Since: s.Since, Means: s.Means, Source: s.Source}
		if !slices.Contains(d.Settings, setting) {
			d.Settings = append(d.Settings, setting)
		}
	}
	d.Contradiction = d.Contradiction || switches.Contradict(known)
}

// count counts in how many differences each node has not the usual value, and finds the odd one out.
func (r *Report) count() {
	odd := map[string]int{}
	for _, d := range r.Differences {
		if !d.usual {
			continue
		}
		for _, v := range d.Values[1:] {
			for _, name := range v.Nodes {
				odd[name]++
			}
		}
	}
	for i, n := range r.Nodes {
		r.Nodes[i].Odd = odd[n.Name]
	}
	ranked := slices.SortedStableFunc(slices.Values(r.Nodes), func(a, b Node) int { return cmp.Compare(b.Odd, a.Odd) })
	if len(ranked) > 2 && ranked[0].Odd > ranked[1].Odd {
		r.OddOneOut = ranked[0].Name
	}
}

// Has reports whether there is a difference that is at least this likely to explain a symptom.
func (r Report) Has(least Likelihood) bool {
	return slices.ContainsFunc(r.Differences, func(d Difference) bool {
		return slices.Index(Likelihoods(), d.Likelihood) <= slices.Index(Likelihoods(), least)
	})
}

// present is the value of an object that another node lacks.
const present = "present"

// key identifies an item.
type key struct {
	kind Kind
	fact string // the fact that has it, by its name in JSON
	name string
	// part is a part of an object with several values, such as the start type of a service; or a value of a key.
	part string
}

// folded returns the key in the form in which nodes are compared. Windows ignores the case of keys and values of the registry,
// of services and of paths; the names of settings in files have a case.
func (k key) folded() key {
	switch {
	case k.kind == Switch:
		k.name, k.part = strings.ToLower(k.name), strings.ToLower(k.part)
	case k.fact == "registeredServices" || k.fact == "driverFiles" || k.fact == "programFiles" || k.fact == "configurationFiles":
		k.name = strings.ToLower(k.name)
	}
	return k
}

func (k key) object() key { return key{kind: k.kind, fact: k.fact, name: k.name} }

func (k key) String() string {
	switch {
	case k.part == "":
		return k.name
	case k.kind == Switch:
		return k.name + `\` + k.part
	case k.kind == Configuration:
		return k.name + ": " + k.part
	}
	return strings.TrimSpace(k.name + " " + k.part)
}
