package preflight

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Gathered has facts that another command has gathered. Only the facts that the check reads
// must be set.
type Gathered struct {
	Machine  platform.Facts
	Services map[string]Service // by lower-case name
	Defender Defender
	// Changeable are programs and folders that ordinary accounts may change.
	Changeable []Changeable
	// Node and Server are the clocks of the node and of the API server, relative to this
	// machine's clock.
	Node, Server Clock
	Reached      []Reached
	// Kubelet and APIServer are versions.
	Kubelet, APIServer string
	CNI                cluster.CNI
}

// Reached is the result of the node's connection to an address of the API server.
type Reached struct {
	What       string                `json:"what"`    // the address's purpose
	Address    string                `json:"address"` // host:port
	Unresolved string                `json:"unresolved,omitempty"`
	Outcome    platform.ReachOutcome `json:"outcome,omitempty"` // empty if the name is not resolved
	Connected  string                `json:"connected,omitempty"`
	Source     string                `json:"source,omitempty"` // the machine's own address of the connection
	Detail     string                `json:"detail,omitempty"`
}

// Judge runs one check on the facts that another command has gathered.
func Judge(check string, s Gathered) ([]finding.Finding, error) {
	f := facts{
		kubelet: s.Kubelet,
		own:     Own{Services: []string{containerdService}}, // containerd may have been installed by any program
		node: &nodeFacts{
			machine: s.Machine, clock: s.Node,
			services: factOf(s.Services, nil), defender: factOf(s.Defender, nil),
			changeable: factOf(s.Changeable, nil),
			runtime:    known[string]{err: fault.ErrNotExist},
		},
		cluster: &clusterFacts{
			version: factOf(s.APIServer, nil), clock: factOf(s.Server, nil), cni: factOf(s.CNI, nil),
		},
	}
	for _, r := range s.Reached {
		f.node.targets = append(f.node.targets, r.target())
	}
	for _, c := range Checks() {
		if c.ID == check {
			return c.look(&f), nil
		}
	}
	return nil, fmt.Errorf("preflight has no check %q", check)
}

func (r Reached) target() reached {
	t := reached{target: target{what: r.What, address: r.Address}}
	if r.Unresolved != "" {
		t.addresses.err = errors.New(r.Unresolved)
	}
	t.reach.value = platform.Reach{Outcome: r.Outcome, Address: r.Connected, Detail: r.Detail}
	return t
}

// Reach makes the node resolve an address and connect to it. It returns an error only if the
// node could not be asked.
func (l Looker) Reach(ctx context.Context, what, address string) (Reached, error) {
	t := l.reach(ctx, target{what: what, address: address})
	r := Reached{What: what, Address: address, Outcome: t.reach.value.Outcome, Connected: t.reach.value.Address,
		Source: t.reach.value.Source, Detail: t.reach.value.Detail}
	if t.addresses.err != nil {
		if Fatal(ctx, t.addresses.err) != nil {
			return r, t.addresses.err
		}
		r.Unresolved = t.addresses.err.Error()
	}
	return r, t.reach.err
}
