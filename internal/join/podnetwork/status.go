package podnetwork

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Status is the state of a cluster's pod network.
type Status struct {
	Cluster   string `json:"cluster"`   // the API server's URL
	Network   string `json:"network"`   // "" if no network that swdt knows was found
	Wanted    string `json:"wanted"`    // the network that the cluster's document names, or none; "" without a document
	Image     string `json:"image"`     // the image of the network's main program; "" if it does not exist
	Installed string `json:"installed"` // swdt, others, or "" if the network does not exist
	// Settings have a result for each step of an installation: ok, or skipped if the step is still
	// needed.
	Settings []plan.StepResult `json:"settings"`
	// Conditions has the state of each condition that must hold so that pods on Windows nodes have
	// a network.
	Conditions []ConditionState `json:"conditions"`
	// Nodes has the nodes of the node files, if swdt looked at them.
	Nodes []NodeReport `json:"nodes"`
}

// ConditionState is the state of one condition.
type ConditionState struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Message string `json:"message"` // the reason why the condition does not hold
}

// Failed reports whether the network lacks a setting, or does not work.
func (s Status) Failed() bool {
	if s.other() {
		return true
	}
	for _, step := range s.Settings {
		if step.State != plan.OK {
			return true
		}
	}
	for _, c := range s.Conditions {
		if !c.Ready {
			return true
		}
	}
	for _, n := range s.Nodes {
		if n.Result == fleet.Failed {
			return true
		}
	}
	return s.Network == ""
}

// other reports whether the document names another network than the one that the cluster has.
func (s Status) other() bool {
	return s.Wanted != "" && s.Wanted != v1alpha1.NoPlugin && s.Wanted != s.Network
}

// Look reads the state of the pod network that the cluster has, whichever network o.Settings names.
// It changes nothing.
func Look(ctx context.Context, c *cluster.Cluster, o Options, r ui.Reporter) (Status, error) {
	status := Status{Cluster: c.Server(), Settings: []plan.StepResult{}, Conditions: []ConditionState{},
		Nodes: []NodeReport{}}
	server := cni.NewServer(c)
	network, err := detect(ctx, server)
	if err != nil || network == "" {
		return status, err
	}
	status.Network, o.Settings.Network = string(network), network
	o.DryRun, o.NoWait = true, true
	w, unknown := gather(ctx, c, o, r)
	if w == nil {
		return status, unknown
	}
	present, err := w.programs(ctx)
	if err != nil {
		return status, err
	}
	status.Image, status.Installed = present.Image, "others"
	if present.Ours {
		status.Installed = "swdt"
	}
	if status.Settings, err = w.compare(ctx, present, unknown, r); err != nil {
		return status, err
	}
	conditions := server.Conditions(network, w.facts, w.kubeProxyForm())
	if w.wanted.KubeProxy != "" && !o.NoKubeProxy && len(w.facts.Windows) > 0 {
		conditions = append(conditions, server.KubeProxyForms(w.wanted.KubeProxy, w.facts.Windows))
	}
	for _, condition := range conditions {
		err := condition.Look(ctx)
		var not *cni.NotReadyError
		if err != nil && !errors.As(err, &not) {
			return status, err
		}
		state := ConditionState{Name: condition.Name, Ready: err == nil}
		if err != nil {
			state.Message = err.Error()
		}
		status.Conditions = append(status.Conditions, state)
	}
	if err := w.checkFlannel(); err != nil {
		status.Conditions = append(status.Conditions, ConditionState{Name: "flannel on Windows nodes", Message: err.Error()})
	}
	return status, nil
}

// compare returns the state of each step of an installation. unknown is the error about a setting
// that neither the cluster nor the user has named; nil if there is none. With that error, compare
// returns one failed result, which contains the error's text.
func (w *work) compare(ctx context.Context, present cni.Programs, unknown error,
	r ui.Reporter) ([]plan.StepResult, error) {
	if unknown != nil {
		return []plan.StepResult{{Name: "settings", State: plan.Failed, Message: unknown.Error()}}, nil
	}
	var failed *plan.FailedError
	results, err := plan.Run(ctx, w.steps(present), w.planOptions(), r)
	if errors.As(err, &failed) {
		err = nil
	}
	return results, err
}

// detect returns the network whose main program is in the cluster, or "" if no such program is
// found.
func detect(ctx context.Context, s *cni.Server) (cni.Network, error) {
	for _, n := range cni.Networks() {
		present, err := s.Programs(ctx, n)
		if err != nil || present.Exists {
			return n, err
		}
	}
	return "", nil
}

// WriteText writes the state for people.
func (s Status) WriteText(p *ui.Page) error {
	if err := s.writeNetwork(p); err != nil || !s.other() {
		return err
	}
	_, err := fmt.Fprintf(p, "the cluster's document names %s\n", s.Wanted)
	return err
}

func (s Status) writeNetwork(p *ui.Page) error {
	if s.Network == "" {
		_, err := fmt.Fprintf(p, "no pod network that swdt installs was found in %s\n", s.Cluster)
		return err
	}
	if _, err := fmt.Fprintf(p, "%s  %s, installed by %s\n", s.Network, s.Image, s.Installed); err != nil {
		return err
	}
	var rows [][]string
	for _, step := range s.Settings {
		switch step.State {
		case plan.OK:
			rows = append(rows, []string{step.Name, "ok", step.Message})
		case plan.Failed:
			rows = append(rows, []string{step.Name, ui.Bad("wrong"), step.Message})
		default:
			rows = append(rows, []string{step.Name, ui.Warn("missing"), step.Change})
		}
	}
	for _, c := range s.Conditions {
		state := "ok"
		if !c.Ready {
			state = ui.Bad("not ready")
		}
		rows = append(rows, []string{c.Name, state, c.Message})
	}
	return errors.Join(ui.Lines(p, rows), WriteNodes(p, s.Nodes))
}
