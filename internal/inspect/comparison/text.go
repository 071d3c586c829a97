package comparison

import (
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// mostNames is the number of nodes that a line names, unless the page is wide.
const mostNames = 5

// WriteText writes the differences, those that most likely explain a symptom first, each with its values, the nodes that have
// them, and for a switch the installers that set it. Then it writes what could not be compared.
func (r Report) WriteText(p *ui.Page) error {
	w := &lines{page: p}
	w.print("%s", r.summary())
	if r.OddOneOut != "" {
		for _, n := range r.Nodes {
			if n.Name == r.OddOneOut {
				w.print("odd one out: %s, which differs from most nodes in %s", n.Name, finding.Several(n.Odd, "fact"))
			}
		}
	}
	for _, likelihood := range Likelihoods() {
		heading := fmt.Sprintf("%s to explain a symptom:", likelihood)
		if likelihood == Possible {
			heading = "possible explanations of a symptom:"
		}
		for _, d := range r.Differences {
			if d.Likelihood != likelihood {
				continue
			}
			if heading != "" {
				w.print("")
				w.print("%s", heading)
				heading = ""
			}
			w.difference(d)
		}
	}
	w.gaps(r.Gaps)
	return w.err
}

// summary returns the result in one line.
func (r Report) summary() string {
	var names []string
	for _, n := range r.Nodes {
		names = append(names, n.Name)
	}
	who := fmt.Sprintf("%d nodes", len(names))
	if len(names) == 2 {
		who = names[0] + " and " + names[1]
	}
	switch {
	case r.Compared == 0:
		return who + " cannot be compared: no fact is known on two of them"
	case len(r.Differences) == 0:
		return fmt.Sprintf("%s are the same in all %s", who, finding.Several(r.Compared, "fact"))
	}
	return fmt.Sprintf("%s differ in %d of %s", who, len(r.Differences), finding.Several(r.Compared, "fact"))
}

// lines writes lines to a page, and keeps the first error.
type lines struct {
	page *ui.Page
	err  error
}

func (w *lines) print(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintln(w.page, ui.Printable(fmt.Sprintf(format, args...)))
	}
}

func (w *lines) difference(d Difference) {
	w.print("  %s: %s", d.Kind, d.Name)
	width := 0
	for _, v := range d.Values {
		width = max(width, min(len(w.nodes(v.Nodes)), 40))
	}
	for _, v := range d.Values {
		value := v.Value
		switch {
		case v.Absent:
			value = "absent"
		case value == "":
			value = `""`
		}
		w.print("      %-*s  %s", width, w.nodes(v.Nodes), value)
	}
	for _, s := range d.Settings {
		text := fmt.Sprintf("%s sets it to %s", s.Installer, s.Value)
		if s.Since != "" {
			text += " since " + s.Since
		}
		if s.Means != "" {
			text += " (" + s.Means + ")"
		}
		w.print("      %s: %s", text, s.Source)
	}
	if d.Contradiction {
		w.print("      these installers contradict each other")
	}
}

// nodes joins names of nodes.
func (w *lines) nodes(names []string) string {
	if more := len(names) - mostNames; more > 1 && !w.page.Wide {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), more)
	}
	return strings.Join(names, ", ")
}

// gaps writes the facts that are unknown, each reason once.
func (w *lines) gaps(all []Gap) {
	type reason struct{ fact, why string }
	nodes := map[reason][]string{}
	var order []reason
	for _, g := range all {
		of := reason{g.Fact, g.Why}
		if nodes[of] == nil {
			order = append(order, of)
		}
		nodes[of] = append(nodes[of], g.Node)
	}
	if len(order) > 0 {
		w.print("")
	}
	for _, of := range order {
		w.print("not compared on %s: %s: %s", w.nodes(nodes[of]), of.fact, of.why)
	}
}
