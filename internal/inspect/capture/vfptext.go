package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/format/vfp"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/ui"
)

// PortSelection selects ports of the virtual switch. An empty selection selects all ports.
type PortSelection struct {
	Ports []string // GUIDs
	Pods  []string // NAMESPACE/NAME
}

// WriteText writes the output of a Windows tool, with LF instead of CR LF.
func WriteText(w io.Writer, text string) error {
	_, err := io.WriteString(w, strings.ReplaceAll(text, "\r\n", "\n"))
	return err
}

// NoPortError reports that a node lacks some of the selected ports.
type NoPortError struct{ names []string }

func (e *NoPortError) Error() string {
	return fmt.Sprintf("no port %s on this node: `swdt capture vfp` lists its ports", strings.Join(e.names, ", "))
}

// ExcuseMissing removes from the nodes' errors the ports that another node has, since each pod is
// on only one of the nodes.
func ExcuseMissing(results []fleet.Result[criclient.Answer]) {
	errs := make([]error, len(results))
	for i, result := range results {
		errs[i] = result.Err
	}
	has := func(err error, name string) bool {
		var lacks *NoPortError
		return err == nil || errors.As(err, &lacks) && !slices.Contains(lacks.names, name)
	}
	for i := range results {
		var lacks *NoPortError
		if !errors.As(errs[i], &lacks) {
			continue
		}
		nowhere := slices.DeleteFunc(slices.Clone(lacks.names), func(name string) bool {
			return slices.ContainsFunc(errs, func(err error) bool { return has(err, name) })
		})
		results[i].Err = nil
		if len(nowhere) > 0 {
			results[i].Err = &NoPortError{nowhere}
		}
	}
}

// Ask asks a node for the counters of the selected ports. If the error is a *NoPortError,
// Ask also returns an answer.
func (o PortSelection) Ask(ctx context.Context, n *node.Node, doc config.Document,
	r ui.Reporter) (answer criclient.Answer, err error) {
	all, err := SwitchPorts(ctx, n.Processes)
	if err != nil {
		return answer, err
	}
	if state, err := hns.Read(ctx, n.Compute); err != nil {
		r.Warn("the pods of the ports are unknown: %v", err)
	} else {
		OwnPorts(all, state, KnownPods(ctx, n, doc, r))
	}
	ports, missing := o.choose(all)
	for i := range ports {
		if err := ports[i].Count(ctx, n.Processes); err != nil {
			return answer, err
		}
	}
	answer.JSON, err = json.Marshal(portDocuments(ports))
	answer.Text = func(w io.Writer) error { return o.print(w, ports) }
	if err == nil && len(missing) > 0 {
		err = &NoPortError{missing}
	}
	return answer, err
}

// choose returns the selected ports, or all ports if the selection is empty. It also returns
// the selected names for which there is no port.
func (o PortSelection) choose(all []SwitchPort) (ports []SwitchPort, missing []string) {
	if !o.named() {
		return all, nil
	}
	add := func(what string, is func(SwitchPort) bool) {
		found := false
		for _, p := range all {
			if !is(p) {
				continue
			}
			found = true
			if !slices.ContainsFunc(ports, func(has SwitchPort) bool { return has.Name == p.Name }) {
				ports = append(ports, p)
			}
		}
		if !found {
			missing = append(missing, what)
		}
	}
	for _, name := range o.Ports {
		add(name, func(p SwitchPort) bool { return strings.EqualFold(p.Name, name) })
	}
	for _, pod := range o.Pods {
		add("of pod "+pod, func(p SwitchPort) bool { return p.Pod == pod })
	}
	return ports, missing
}

func (o PortSelection) named() bool { return len(o.Ports)+len(o.Pods) > 0 }

// portDocument is a port as JSON.
type portDocument struct {
	Port     string            `json:"port"` // a GUID
	Label    string            `json:"label"`
	Switch   string            `json:"switch"`
	MAC      string            `json:"mac"`
	Endpoint string            `json:"endpoint"`
	Pod      string            `json:"pod"`
	Counters []counterDocument `json:"counters"`
	Raw      string            `json:"raw"` // vfpctrl's output, if swdt found no counter in it
}

type counterDocument struct {
	Direction string            `json:"direction"` // out: from the port into the switch; in: from the switch to the port
	Counts    map[string]uint64 `json:"counts"`
}

func portDocuments(ports []SwitchPort) []portDocument {
	all := []portDocument{}
	for _, p := range ports {
		document := portDocument{Port: p.Name, Label: p.Label, Switch: p.Switch, MAC: p.MAC, Endpoint: p.Endpoint,
			Pod: p.Pod, Counters: []counterDocument{}, Raw: p.Raw}
		for _, c := range p.Counters {
			counts := map[string]uint64{}
			for _, v := range c.Values {
				counts[v.Name] = v.Count
			}
			document.Counters = append(document.Counters, counterDocument{Direction: c.Direction, Counts: counts})
		}
		all = append(all, document)
	}
	return all
}

func (o PortSelection) print(w io.Writer, ports []SwitchPort) error {
	var rows [][]string
	for _, p := range ports {
		for _, c := range p.Counters {
			rows = append(rows, []string{p.Name, portOwner(p), c.Direction, countText(c.Total("packets")),
				countText(c.Total("bytes")), countText(c.Dropped()), dropsBy(c)})
		}
		if len(p.Counters) == 0 {
			rows = append(rows, []string{p.Name, portOwner(p), "-", "-", "-", "-", "-"})
		}
	}
	if err := ui.TableOr(w, "no such port", []string{"PORT", "OF", "WAY", "PACKETS", "BYTES", "DROPPED", "BY"},
		rows); err != nil {
		return err
	}
	for _, p := range ports {
		if p.Raw != "" {
			if err := WriteText(w, "\n"+p.Name+", as vfpctrl prints it:\n"+p.Raw+"\n"); err != nil {
				return err
			}
		}
		if o.named() && len(p.Counters) > 0 {
			if err := printCounters(w, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// printCounters prints every counter of a port, one per line.
func printCounters(w io.Writer, p SwitchPort) error {
	var names []string
	counts := map[string]map[string]uint64{}
	for _, c := range p.Counters {
		counts[c.Direction] = map[string]uint64{}
		for _, v := range c.Values {
			counts[c.Direction][v.Name] = v.Count
			if !slices.Contains(names, v.Name) {
				names = append(names, v.Name)
			}
		}
	}
	var rows [][]string
	for _, name := range names {
		row := []string{name}
		for _, direction := range []string{vfp.Out, vfp.In} {
			count, ok := counts[direction][name]
			row = append(row, countText(count, ok))
		}
		rows = append(rows, row)
	}
	if _, err := fmt.Fprintf(w, "\n%s, %s:\n", p.Name, portOwner(p)); err != nil {
		return err
	}
	return ui.Table(w, []string{"COUNTER", "OUT", "IN"}, rows)
}

// portOwner returns the pod of a port. If no pod is known and the switch has a label for the port,
// portOwner returns the label.
func portOwner(p SwitchPort) string {
	if p.Pod != hns.None && p.Pod != hns.Unknown || p.Label == "" {
		return p.Pod
	}
	return p.Label
}

func countText(count uint64, known bool) string {
	if !known {
		return "-"
	}
	return strconv.FormatUint(count, 10)
}

func dropsBy(c vfp.Counters) string {
	var all []string
	for _, v := range c.Reasons() {
		all = append(all, fmt.Sprintf("%s: %d", v.Name, v.Count))
	}
	return strings.Join(all, ", ")
}
