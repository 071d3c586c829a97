package podnetwork

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Status is the state of a cluster's pod network.
type Status struct {
	Cluster   string `json:"cluster"`   // the API server's URL
	Network   string `json:"network"`   // "" if no network that swdt knows was found
	Image     string `json:"image"`     // of its main program; "" if that does not exist
	Installed string `json:"installed"` // swdt, others, or "" if it does not exist
	// Settings have a result for each step of an installation: ok, or skipped if it is needed.
	Settings []plan.StepResult `json:"settings"`
	// Conditions have to hold for pods on Windows nodes to have a network.
	Conditions []ConditionState `json:"conditions"`
}

// ConditionState is the state of one condition.
type ConditionState struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Message string `json:"message"` // the reason why it does not hold
}

// Failed reports whether the network lacks a setting, or does not work.
func (s Status) Failed() bool {
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
	return s.Network == ""
}

// Look reads the state of the pod network. An empty network in the settings means the one that the
// cluster has. It changes nothing.
func Look(ctx context.Context, c *cluster.Cluster, o Options, r ui.Reporter) (Status, error) {
	status := Status{Cluster: c.Server(), Settings: []plan.StepResult{}, Conditions: []ConditionState{}}
	server := cni.NewServer(c)
	network, err := detect(ctx, server)
	if err != nil || network == "" {
		return status, err
	}
	status.Network, o.Settings.Network = string(network), network
	o.DryRun, o.NoWait = true, true
	w, err := gather(ctx, c, o, r)
	if err != nil {
		return status, err
	}
	present, err := w.programs(ctx)
	if err != nil {
		return status, err
	}
	status.Image, status.Installed = present.Image, "others"
	if present.Ours {
		status.Installed = "swdt"
	}
	var failed *plan.FailedError
	status.Settings, err = plan.Run(ctx, nil, w.steps(present), w.planOptions(), r)
	if err != nil && !errors.As(err, &failed) {
		return status, err
	}
	for _, condition := range server.Conditions(network, w.facts, !o.NoKubeProxy) {
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
	return status, nil
}

// detect returns the network whose main program the cluster has, or "".
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
	return ui.Lines(p, rows)
}
