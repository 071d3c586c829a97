package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// ErrRoot means that a step needs root's rights.
var ErrRoot = errors.New("it needs root's rights")

// ErrNothingToPrepare is returned for a VM whose network needs no preparation by swdt.
var ErrNothingToPrepare = errors.New("swdt prepares only networks of mode bridge: write `mode: bridge` and " +
	"`bridge: kind` into spec.machine.network")

// Preparation returns the steps that make the Docker network and the tap for a VM.
func Preparation(d Docker, w Wanted) ([]plan.Step, error) {
	if w.Mode != Bridge {
		return nil, ErrNothingToPrepare
	}
	return []plan.Step{&makeNetwork{docker: d, name: w.Bridge}, &makeTap{docker: d, wanted: w}}, nil
}

// Removal returns the steps that remove the VM's tap, and the Docker network if swdt has made it and
// nothing else uses it.
func Removal(d Docker, w Wanted) ([]plan.Step, error) {
	if w.Mode != Bridge {
		return nil, ErrNothingToPrepare
	}
	return []plan.Step{&removeTap{w}, &removeNetwork{docker: d, wanted: w}}, nil
}

// makeNetwork makes kind's Docker network before kind does, so that VMs have addresses that Docker
// never gives to containers.
type makeNetwork struct {
	docker  Docker
	name    string
	network NewNetwork
}

func (s *makeNetwork) Name() string { return "docker network" }

func (s *makeNetwork) Plan(ctx context.Context) (plan.Change, error) {
	place, err := Find(ctx, s.docker, s.name)
	switch {
	case err == nil:
		return plan.Change{Summary: fmt.Sprintf("%s is bridge %s with %s", s.name, place.Bridge, place.Subnet)}, nil
	case !errors.Is(err, ErrNoDockerNetwork):
		return plan.Change{}, err
	case !isKinds(s.name):
		return plan.Change{}, fmt.Errorf("%w, nor a bridge of that name; swdt makes only the network of kind: write "+
			"`bridge: kind`, or a name that `docker network ls` lists", err)
	}
	others, err := s.docker.Networks(ctx)
	if err != nil {
		return plan.Change{}, err
	}
	used := ownSubnets()
	for _, other := range others {
		used = append(used, other.Subnet)
	}
	subnet, err := freeSubnet(used)
	if err != nil {
		return plan.Change{}, err
	}
	s.network = NewNetwork{Name: s.name, Subnet: subnet}
	return plan.Change{
		Needed: true,
		Summary: fmt.Sprintf("make the Docker network %s: %s for containers, the rest of %s for VMs",
			s.name, s.network.containers(), subnet),
		Detail: s.network.Command(),
	}, nil
}

func (s *makeNetwork) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	return plan.Outcome{}, s.docker.Make(ctx, s.network)
}

// ownSubnets returns the subnets of your machine's interfaces.
func ownSubnets() (all []netip.Prefix) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			all = append(all, prefix.Masked())
		}
	}
	return all
}

// makeTap makes the VM's tap, which its owner can then use without root's rights.
type makeTap struct {
	docker Docker
	wanted Wanted
}

func (s *makeTap) Name() string { return "tap" }

func (s *makeTap) tap(bridge string) Tap {
	return Tap{Name: s.wanted.Tap, Bridge: bridge, Owner: s.wanted.Owner}
}

// Plan compares your machine with the wanted tap. The tap's bridge may not exist yet, if the step
// before this one makes it.
func (s *makeTap) Plan(ctx context.Context) (plan.Change, error) {
	place, err := Find(ctx, s.docker, s.wanted.Bridge)
	if errors.Is(err, ErrNoDockerNetwork) && isKinds(s.wanted.Bridge) {
		return s.change([]string{fmt.Sprintf("make the tap device %s for user %d, on the bridge of %s",
			s.wanted.Tap, s.wanted.Owner, s.wanted.Bridge)}, "BRIDGE"), nil
	}
	if err != nil {
		return plan.Change{}, err
	}
	missing, err := s.tap(place.Bridge).Missing()
	if err != nil || len(missing) == 0 {
		return plan.Change{Summary: fmt.Sprintf("%s is on bridge %s", s.wanted.Tap, place.Bridge)}, err
	}
	return s.change(missing, place.Bridge), nil
}

func (s *makeTap) change(missing []string, bridge string) plan.Change {
	return plan.Change{Needed: true, Summary: list(missing), Detail: fmt.Sprintf(
		"ip tuntap add %[1]s mode tap user %[2]d && ip link set %[1]s master %[3]s up", s.wanted.Tap, s.wanted.Owner, bridge)}
}

// Apply makes the tap. It returns ErrRoot if this process lacks the rights.
func (s *makeTap) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	place, err := Find(ctx, s.docker, s.wanted.Bridge)
	if err == nil && !CanMake() {
		err = ErrRoot
	}
	if err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, s.tap(place.Bridge).Make()
}

// removeTap removes the VM's tap.
type removeTap struct{ wanted Wanted }

func (s *removeTap) Name() string { return "tap" }

func (s *removeTap) tap() Tap { return Tap{Name: s.wanted.Tap, Owner: s.wanted.Owner} }

func (s *removeTap) Plan(context.Context) (plan.Change, error) {
	exists, err := s.tap().Exists()
	if err != nil || !exists {
		return plan.Change{Summary: "there is no " + s.wanted.Tap}, err
	}
	return plan.Change{Needed: true, Summary: "remove the tap device " + s.wanted.Tap,
		Detail: "ip tuntap del " + s.wanted.Tap + " mode tap"}, nil
}

func (s *removeTap) Apply(context.Context, ui.Reporter) (plan.Outcome, error) {
	return plan.Outcome{}, s.tap().Remove()
}

// removeNetwork removes a Docker network that swdt has made, unless containers or interfaces other
// than the VM's tap are on it.
type removeNetwork struct {
	docker Docker
	wanted Wanted
}

func (s *removeNetwork) Name() string { return "docker network" }

func (s *removeNetwork) Plan(ctx context.Context) (plan.Change, error) {
	keep := func(why string) (plan.Change, error) {
		return plan.Change{Summary: fmt.Sprintf("%s stays: %s", s.wanted.Bridge, why)}, nil
	}
	n, err := s.docker.Network(ctx, s.wanted.Bridge)
	switch {
	case errors.Is(err, ErrNoDockerNetwork):
		return plan.Change{Summary: "there is no Docker network " + s.wanted.Bridge}, nil
	case err != nil:
		return plan.Change{}, err
	case !n.Made:
		return keep("swdt has not made it")
	case len(n.Containers) > 0:
		return keep("containers are on it: " + names(&n))
	}
	ports, err := portsOf(n.Bridge)
	if err != nil {
		return plan.Change{}, err
	}
	if others := slices.DeleteFunc(ports, func(p string) bool { return p == s.wanted.Tap }); len(others) > 0 {
		return keep("other interfaces are on its bridge: " + list(others))
	}
	return plan.Change{Needed: true, Summary: "remove the Docker network " + s.wanted.Bridge,
		Detail: "docker network rm " + s.wanted.Bridge}, nil
}

func (s *removeNetwork) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	return plan.Outcome{}, s.docker.Remove(ctx, s.wanted.Bridge)
}

// Results are the results of a run of steps.
type Results struct {
	Steps    []plan.StepResult
	NeedRoot bool // a step was skipped since it needs root's rights
}

// Run compares all steps, and then applies the needed steps in order. If a step fails, the steps
// after it are skipped. A step that only lacks root's rights does not count as failed.
func Run(ctx context.Context, steps []plan.Step, dryRun bool, r ui.Reporter) (Results, error) {
	done, err := plan.Run(ctx, steps, plan.Options{DryRun: dryRun, Ordered: true, Elsewhere: "this machine"}, r)
	results := Results{Steps: done, NeedRoot: errors.Is(err, ErrRoot)}
	if !results.NeedRoot {
		return results, err
	}
	for i := range done {
		if done[i].State == plan.Failed {
			done[i].State, done[i].Message = plan.Skipped, ErrRoot.Error()
		}
	}
	return results, nil
}
