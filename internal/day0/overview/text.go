package overview

import (
	"errors"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

// WriteText writes the state for people: the cluster, the pod network, and a table of the nodes. A wide
// page also has all settings of the network and the components of the nodes.
func (r Report) WriteText(p *ui.Page) error {
	if err := r.writeCluster(p); err != nil {
		return err
	}
	if err := r.Network.writeText(p); err != nil || len(r.Nodes) == 0 {
		return err
	}
	header, rows := []string{"NODE", "VM", "WINDOWS", "SERVICES", "KUBERNETES"}, [][]string(nil)
	for _, n := range r.Nodes {
		rows = append(rows, []string{n.Name, n.machine(), n.windows(), n.services(), n.Kubernetes.text()})
	}
	if err := ui.Table(p, header, rows); err != nil || !p.Wide {
		return err
	}
	statuses := push.StatusReport{}
	for _, n := range r.Nodes {
		statuses.Nodes = append(statuses.Nodes, n.NodeStatus)
	}
	return statuses.WriteText(p)
}

func (r Report) writeCluster(p *ui.Page) error {
	if r.Cluster.Result == fleet.Failed {
		_, err := fmt.Fprintf(p, "cluster %s: %s\n", r.Cluster.Name, ui.Bad(firstLine(r.Cluster.Error)))
		return err
	}
	return r.Cluster.WriteText(p)
}

func (n Network) writeText(p *ui.Page) error {
	line := "pod network " + n.name() + ": "
	switch {
	case n.Result == fleet.Failed:
		line += ui.Warn("unknown") + ": " + firstLine(n.Error)
	case n.worksWithoutSwdt():
		line = "pod network: the cluster's document leaves it to other tools"
	case n.Network == "":
		line += ui.Bad("not installed") + ": `swdt network install` installs it"
	case !n.installed():
		line += ui.Warn("the cluster has this one") + ", but its document names " + n.Wanted
	case n.Status.Failed():
		line += ui.Bad("does not work")
	default:
		line += "works"
	}
	if _, err := fmt.Fprintln(p, line); err != nil || n.Network == "" {
		return err
	}
	if p.Wide {
		return n.Status.WriteText(p)
	}
	return n.writeProblems(p)
}

// writeProblems writes the settings that are wrong, and the conditions that do not hold.
func (n Network) writeProblems(p *ui.Page) (err error) {
	for _, setting := range n.Settings {
		if setting.State != plan.OK {
			_, failed := fmt.Fprintf(p, "  %s: %s\n", setting.Name, firstLine(setting.Message+setting.Change))
			err = errors.Join(err, failed)
		}
	}
	for _, condition := range n.Conditions {
		if !condition.Ready {
			_, failed := fmt.Fprintf(p, "  %s: %s\n", condition.Name, firstLine(condition.Message))
			err = errors.Join(err, failed)
		}
	}
	return err
}

// machine returns the state of the node's VM; "" if the node is no VM.
func (n Node) machine() string {
	switch {
	case n.Machine == nil:
		return ""
	case n.Machine.Reason != "":
		return string(n.Machine.State) + ": " + firstLine(n.Machine.Reason)
	}
	return string(n.Machine.State)
}

// windows returns the product and the build of the node's Windows, or that swdt did not reach the node.
func (n Node) windows() string {
	if n.Error != "" {
		return ui.Bad("not reached")
	}
	return strings.TrimPrefix(n.OS.Product, "Windows ") + " " + n.OS.Build
}

// services returns the state of the node's services in a few words: their number if all run, or else
// the names of those that do not run.
func (n Node) services() string {
	if n.Error != "" {
		return ""
	}
	running, others := 0, []string(nil)
	for _, c := range n.Components {
		switch {
		case c.Service == nil:
		case c.Running():
			running++
		default:
			others = append(others, c.Name+" "+ui.Words(c.Service.State))
		}
	}
	switch {
	case len(others) > 0:
		return ui.Bad(strings.Join(others, ", "))
	case running > 0:
		return fmt.Sprintf("%d running", running)
	}
	return "none"
}

func (k Kubernetes) text() string {
	switch {
	case k.Error != "":
		return ui.Warn("unknown") + ": " + firstLine(k.Error)
	case k.State == "":
		return ""
	case k.Ready:
		return k.State + ", " + k.KubeletVersion
	}
	return ui.Bad(firstLine(k.State))
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}
