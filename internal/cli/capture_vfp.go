package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/capture"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/criclient"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/hns"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vfp"
)

// vfpOptions are the flags of swdt capture vfp.
type vfpOptions struct {
	ports, pods []string
}

func (a *app) captureVFPCommand() *cobra.Command {
	o := &vfpOptions{}
	cmd := forNodes(&cobra.Command{
		Use: "vfp [flags]", Short: "What the virtual switch's filters have counted at its ports",
		Long: `Shows the counters of the virtual filtering platform, which carries out policies
and load balancing in the virtual switch: at each of its ports, whose it is, and how
many packets and bytes went out of it into the switch and in from there, and how
many were dropped, by what.

Of ports that are named, by --port or --pod, every counter is shown, of the node that
has them. JSON and YAML have them all.`,
		Example: examples(
			"capture vfp", "every port, and whose it is",
			"capture vfp --pod default/web-0", "all that was counted at a pod's port",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.runVFP(cmd.Context(), o)
		},
	})
	cmd.Flags().StringSliceVar(&o.ports, "port", nil, "only this port: its `GUID`, as vfpctrl names it")
	cmd.Flags().StringSliceVar(&o.pods, "pod", nil, "only the ports of this pod, as `NAMESPACE/NAME`")
	must(cmd.RegisterFlagCompletionFunc("pod", listed(a.completePods)))
	return cmd
}

func (o *vfpOptions) check() error {
	for _, port := range o.ports {
		if !capture.IsGUID(port) {
			return usagef("--port %s: a port's name is a GUID, such as 2BE5EAA5-2F4D-4D85-8F6E-0C6C0F1C3A11", port)
		}
	}
	for _, pod := range o.pods {
		if err := capture.ParseName(pod); err != nil {
			return usagef("--pod: %v", err)
		}
	}
	return nil
}

func (a *app) runVFP(ctx context.Context, o *vfpOptions) error {
	results, err := a.askNodes(ctx, o.ask)
	if err != nil {
		return err
	}
	excuse(results)
	return a.printAnswers(results)
}

// noPortError: a node has no such ports.
type noPortError struct{ names []string }

func (e *noPortError) Error() string {
	return fmt.Sprintf("no port %s on this node: `swdt capture vfp` lists them", strings.Join(e.names, ", "))
}

// excuse lets a node lack ports that another one has: a pod is on one of them.
func excuse(results []fleet.Result[criclient.Answer]) {
	errs := make([]error, len(results))
	for i, result := range results {
		errs[i] = result.Err
	}
	has := func(err error, name string) bool {
		var lacks *noPortError
		return err == nil || errors.As(err, &lacks) && !slices.Contains(lacks.names, name)
	}
	for i := range results {
		var lacks *noPortError
		if !errors.As(errs[i], &lacks) {
			continue
		}
		nowhere := slices.DeleteFunc(slices.Clone(lacks.names), func(name string) bool {
			return slices.ContainsFunc(errs, func(err error) bool { return has(err, name) })
		})
		results[i].Err = nil
		if len(nowhere) > 0 {
			results[i].Err = &noPortError{nowhere}
		}
	}
}

// ask gives an answer beside a *noPortError, too.
func (o *vfpOptions) ask(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (answer criclient.Answer, err error) {
	all, err := capture.SwitchPorts(ctx, n.Processes)
	if err != nil {
		return answer, err
	}
	if state, err := hns.Read(ctx, n.Compute); err != nil {
		r.Warn("whose the ports are is not known: %v", err)
	} else {
		capture.OwnPorts(all, state, podsOf(ctx, n, doc, r))
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
		err = &noPortError{missing}
	}
	return answer, err
}

// choose keeps to the ports that were named, and says which of them are missing.
func (o *vfpOptions) choose(all []capture.SwitchPort) (ports []capture.SwitchPort, missing []string) {
	if !o.named() {
		return all, nil
	}
	add := func(what string, is func(capture.SwitchPort) bool) {
		found := false
		for _, p := range all {
			if !is(p) {
				continue
			}
			found = true
			if !slices.ContainsFunc(ports, func(has capture.SwitchPort) bool { return has.Name == p.Name }) {
				ports = append(ports, p)
			}
		}
		if !found {
			missing = append(missing, what)
		}
	}
	for _, name := range o.ports {
		add(name, func(p capture.SwitchPort) bool { return strings.EqualFold(p.Name, name) })
	}
	for _, pod := range o.pods {
		add("of pod "+pod, func(p capture.SwitchPort) bool { return p.Pod == pod })
	}
	return ports, missing
}

func (o *vfpOptions) named() bool { return len(o.ports)+len(o.pods) > 0 }

// vfpPort is a port as JSON.
type vfpPort struct {
	Port     string        `json:"port"` // a GUID
	Label    string        `json:"label,omitempty"`
	Switch   string        `json:"switch,omitempty"`
	MAC      string        `json:"mac,omitempty"`
	Endpoint string        `json:"endpoint,omitempty"`
	Pod      string        `json:"pod"`
	Counters []vfpCounters `json:"counters"`
	Raw      string        `json:"raw,omitempty"` // where nothing in it is known
}

type vfpCounters struct {
	Direction string            `json:"direction"` // out of the port into the switch, in
	Counts    map[string]uint64 `json:"counts"`
}

func portDocuments(ports []capture.SwitchPort) []vfpPort {
	all := []vfpPort{}
	for _, p := range ports {
		document := vfpPort{Port: p.Name, Label: p.Label, Switch: p.Switch, MAC: p.MAC, Endpoint: p.Endpoint, Pod: p.Pod, Counters: []vfpCounters{}, Raw: p.Raw}
		for _, c := range p.Counters {
			counts := map[string]uint64{}
			for _, v := range c.Values {
				counts[v.Name] = v.Count
			}
			document.Counters = append(document.Counters, vfpCounters{Direction: c.Direction, Counts: counts})
		}
		all = append(all, document)
	}
	return all
}

func (o *vfpOptions) print(w io.Writer, ports []capture.SwitchPort) error {
	var rows [][]string
	for _, p := range ports {
		for _, c := range p.Counters {
			rows = append(rows, []string{p.Name, portOwner(p), c.Direction, countText(c.Total("packets")), countText(c.Total("bytes")), countText(c.Dropped()), dropsBy(c)})
		}
		if len(p.Counters) == 0 {
			rows = append(rows, []string{p.Name, portOwner(p), "-", "-", "-", "-", "-"})
		}
	}
	if err := ui.TableOr(w, "no such port", []string{"PORT", "OF", "WAY", "PACKETS", "BYTES", "DROPPED", "BY"}, rows); err != nil {
		return err
	}
	for _, p := range ports {
		if p.Raw != "" {
			if err := writeText(w, "\n"+p.Name+", as vfpctrl prints it:\n"+p.Raw+"\n"); err != nil {
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

// printCounters prints every counter of a port, one a line.
func printCounters(w io.Writer, p capture.SwitchPort) error {
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

// portOwner is the pod of a port; else how the switch labels it.
func portOwner(p capture.SwitchPort) string {
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
