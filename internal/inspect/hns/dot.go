package hns

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// DOT writes the picture in DOT, the language of Graphviz.
func (g Graph) DOT(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b,
		"digraph hns {\n  label=%s; labelloc=t; rankdir=LR; node [shape=box, fontname=\"sans-serif\", fontsize=10];\n",
		quoted(g.Title))
	for i, group := range g.Networks {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s;\n",
			i, quoted(strings.Join(group.Network.lines(), "\n")))
		for _, v := range group.Endpoints {
			style := ""
			if v.Endpoint.Remote {
				style = ", style=dashed"
			}
			fmt.Fprintf(&b, "    %s [label=%s%s];\n", quoted(v.Endpoint.ID), quoted(v.label()+"\n"+v.Endpoint.IP()),
				style)
		}
		b.WriteString("  }\n")
	}
	for i, bundle := range g.Balanced {
		fmt.Fprintf(&b, "  lb%d [shape=oval, label=%s];\n", i,
			quoted(strings.Join(append([]string{bundle.label()}, bundle.Lines...), "\n")))
		for _, id := range bundle.Endpoints {
			fmt.Fprintf(&b, "  lb%d -> %s;\n", i, quoted(id))
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// quoted returns text as a string literal of DOT.
func quoted(text string) string {
	text = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text)
	return `"` + text + `"`
}

// lines returns the description of a network.
func (n Network) lines() []string {
	lines := []string{strings.TrimSpace(n.Name + "  " + n.Type)}
	for _, s := range n.Subnets {
		line := s.Prefix
		if s.Gateway != "" {
			line += " by " + s.Gateway
		}
		lines = append(lines, line)
	}
	return lines
}

// label returns the pod's name, or else the endpoint's own name.
func (v Vertex) label() string {
	return cmp.Or(v.Pod, v.Endpoint.Name, short(v.Endpoint.ID))
}

func (b Bundle) label() string {
	if len(b.Endpoints) == 0 {
		return cmp.Or(b.Service, "load balancer") + " (no endpoints)"
	}
	return cmp.Or(b.Service, "load balancer ("+strconv.Itoa(len(b.Endpoints))+")")
}
