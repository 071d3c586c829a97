package vm

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm/network"
)

// NetworkReport is the result of a check of one VM's network.
type NetworkReport struct {
	fleet.Outcome             // the result is ok or failed
	Mode          NetworkMode `json:"mode"`
	Bridge        string      `json:"bridge"`  // the bridge on your machine; empty if no bridge was found
	Subnet        string      `json:"subnet"`  // of the bridge
	Gateway       string      `json:"gateway"` // your machine's address on the bridge
	Tap           string      `json:"tap"`
	// Address is the VM's address or, if the VM does not exist yet, the address that it would get.
	Address  string            `json:"address"`
	Problems []finding.Problem `json:"problems"`
}

// NetworkChecks are the results of a check of the VMs' networks.
type NetworkChecks struct {
	VMs []NetworkReport `json:"vms"`
}

// Failed reports whether the network of at least one VM does not work.
func (c NetworkChecks) Failed() bool {
	for _, vm := range c.VMs {
		if vm.Result == fleet.Failed {
			return true
		}
	}
	return false
}

// CheckNetworks finds the problems that keep the VMs of node files from their networks and their
// clusters.
func (s *Machines) CheckNetworks(ctx context.Context, documents []config.Document) (NetworkChecks, error) {
	checks := NetworkChecks{VMs: []NetworkReport{}}
	for _, document := range documents {
		w, err := s.documented(document)
		if err != nil {
			return checks, err
		}
		found := network.Check(ctx, s.docker, w)
		finding.Sort(found.Problems)
		report := NetworkReport{
			Outcome: fleet.NewOutcome(document.Node.Metadata.Name, ok, nil), Mode: NetworkMode(w.Mode), Tap: w.Tap,
			Bridge: found.Place.Bridge, Problems: append([]finding.Problem{}, found.Problems...),
		}
		if found.Place.Subnet.IsValid() {
			report.Subnet, report.Gateway = found.Place.Subnet.String(), found.Place.Gateway.String()
		}
		if found.Address.IsValid() {
			report.Address = found.Address.String()
		}
		if finding.Has(found.Problems, finding.Error) {
			report.Result = fleet.Failed
		}
		checks.VMs = append(checks.VMs, report)
	}
	return checks, ctx.Err()
}

// documented returns the network that a node file describes. If the VM exists already, the network
// has the VM's address and the MAC address of its card.
func (s *Machines) documented(document config.Document) (network.Wanted, error) {
	w := WantedNetwork(document)
	record, err := s.store.Get(document.Node.Metadata.Name)
	switch {
	case errors.Is(err, ErrUnknown):
		record = Record{}
		record.Name = document.Node.Metadata.Name
	case err != nil:
		return w, err
	}
	made, err := s.wanted(record)
	w.Taken, w.MAC = made.Taken, made.MAC
	if !w.Address.IsValid() && w.Mode == made.Mode {
		w.Address = made.Address
	}
	return w, err
}

// WriteText writes a summary and the findings for each VM.
func (c NetworkChecks) WriteText(page *ui.Page) error {
	for _, vm := range c.VMs {
		summary := "its network works"
		if vm.Result == fleet.Failed {
			summary = "its network does not work"
		}
		if vm.Address != "" {
			summary += fmt.Sprintf(", %s on bridge %s", vm.Address, vm.Bridge)
		}
		if counts := finding.Counts(vm.Problems); counts != "" {
			summary += ": " + counts
		}
		if _, err := fmt.Fprintf(page, "%s: %s\n", vm.Name, summary); err != nil {
			return err
		}
		if err := WriteProblems(page, vm.Problems); err != nil {
			return err
		}
	}
	return nil
}

// NetworkSteps are the results of the preparation or removal of the VMs' networks.
type NetworkSteps struct {
	VMs []NetworkStepsReport `json:"vms"`
}

// NetworkStepsReport is the result for one VM.
type NetworkStepsReport struct {
	fleet.Outcome                   // the result is changed, unchanged or failed
	Steps         []plan.StepResult `json:"steps"`
	// Root is the command that root must run to complete the preparation; empty if root's rights
	// are not needed.
	Root []string `json:"root"`
}

// NewNetworkSteps returns the results of several VMs. If a step for a VM needs root's rights, it
// calls root with the VM's name to get the command that the user root must run.
func NewNetworkSteps(results []fleet.Result[network.Results], root func(name string) []string) NetworkSteps {
	all := NetworkSteps{VMs: []NetworkStepsReport{}}
	for _, result := range results {
		report := NetworkStepsReport{
			Outcome: fleet.NewOutcome(result.Name(), unchanged, result.Err),
			Steps:   append([]plan.StepResult{}, result.Value.Steps...), Root: []string{},
		}
		for _, step := range report.Steps {
			if step.State == plan.Changed && report.Error == "" {
				report.Result = changed
			}
		}
		if result.Value.NeedRoot {
			report.Root = root(result.Name())
		}
		all.VMs = append(all.VMs, report)
	}
	return all
}

// WriteText writes a line for each step. join quotes a command for the user's shell.
func (n NetworkSteps) WriteText(page *ui.Page, join func([]string) string) error {
	for _, vm := range n.VMs {
		for _, step := range vm.Steps {
			text := step.Message
			switch step.State {
			case plan.Changed:
				text = "done: " + step.Change
			case plan.Skipped:
				text = fmt.Sprintf("would %s: %s", step.Change, step.Detail)
				if step.Message != "dry run" {
					text = fmt.Sprintf("to do: %s (%s)", step.Change, step.Message)
				}
			case plan.Failed:
				text = "failed: " + step.Change
			default:
				text = "nothing to do: " + text
			}
			if _, err := fmt.Fprintf(page, "%s: %s: %s\n", vm.Name, step.Name, text); err != nil {
				return err
			}
		}
		if len(vm.Root) == 0 {
			continue
		}
		_, err := fmt.Fprintf(page, "Root's rights are needed once, until this machine restarts. Root makes the tap "+
			"device and puts it on\nthe bridge, so that your VM can use it without root:\n  %s\n", join(vm.Root))
		if err != nil {
			return err
		}
	}
	return nil
}
