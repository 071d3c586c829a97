package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/join/combination"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// reachTimeout bounds the node's connection to the API server. resolveTimeout bounds the
// look-up of the API server's name: if DNS does not have a name, Windows also asks other
// hosts for it.
const reachTimeout, resolveTimeout = 5 * time.Second, 20 * time.Second

// Looker gathers facts from a node, for this package's checks and for other packages.
type Looker struct{ *node.Node }

// gatherNode gathers the node's facts. If a fact cannot be gathered, it is unknown. Only
// the loss of the node, the end of ctx, and the failure of the request for the machine's
// own facts are errors.
func gatherNode(ctx context.Context, in Input, targets []target) (*nodeFacts, error) {
	l := Looker{in.Node}
	f := &nodeFacts{targets: make([]reached, len(targets))}
	group, all := errgroup.WithContext(ctx)
	look := func(at func(context.Context) error) {
		group.Go(func() error { return Fatal(all, at(all)) })
	}
	look(func(ctx context.Context) (err error) {
		f.machine, f.clock, err = l.Machine(ctx)
		if err != nil { // no check can run without the machine's facts
			err = &noFactsError{err}
		}
		return err
	})
	look(func(ctx context.Context) error {
		f.name = factOf(in.Node.ObjectName(ctx, in.Spec.Join))
		return f.name.err
	})
	look(func(ctx context.Context) error {
		f.features = factOf(l.Features(ctx, wantedFeatures(in.Spec)...))
		return f.features.err
	})
	look(func(ctx context.Context) error {
		f.services = factOf(l.Services(ctx, servicesThatMatter()...))
		return f.services.err
	})
	look(func(ctx context.Context) error { f.processes = factOf(l.processes(ctx)); return f.processes.err })
	look(func(ctx context.Context) error { f.listeners = factOf(l.Listeners(ctx)); return f.listeners.err })
	look(func(ctx context.Context) error { f.files = factOf(l.Existing(ctx, leftovers()...)); return f.files.err })
	look(func(ctx context.Context) error {
		f.changeable = factOf(l.Changeable(ctx, programsOf(in.Spec)...))
		return f.changeable.err
	})
	look(func(ctx context.Context) error { f.firewall = factOf(l.Firewall(ctx)); return f.firewall.err })
	look(func(ctx context.Context) error { f.defender = factOf(l.Defender(ctx)); return f.defender.err })
	look(func(ctx context.Context) error { f.runtime = factOf(l.Runtime(ctx)); return f.runtime.err })
	look(func(ctx context.Context) (err error) { f.uuid, err = in.Node.SystemUUID(ctx); return err })
	look(func(ctx context.Context) error { f.addresses = factOf(l.OwnAddresses(ctx)); return f.addresses.err })
	for i, t := range targets {
		look(func(ctx context.Context) error {
			f.targets[i] = l.reach(ctx, t)
			return errors.Join(f.targets[i].addresses.err, f.targets[i].reach.err)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return f, nil
}

// noFactsError is the failure of the one call without which no check can run.
type noFactsError struct{ err error }

func (e *noFactsError) Error() string { return e.err.Error() }
func (e *noFactsError) Unwrap() error { return e.err }

// Fatal returns err if the gathering must end, since the node is lost, the machine's own
// facts are missing, or ctx has ended. Otherwise it returns nil.
func Fatal(ctx context.Context, err error) error {
	var lost *node.LostError
	var noFacts *noFactsError
	if ctx.Err() != nil || errors.As(err, &lost) || errors.As(err, &noFacts) {
		return err
	}
	return nil
}

// Machine returns the machine's own facts, and its clock.
func (l Looker) Machine(ctx context.Context) (platform.Facts, Clock, error) {
	sent := time.Now()
	r, err := l.Node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return platform.Facts{}, Clock{}, err
	}
	trip := time.Since(sent)
	facts := platform.Facts{
		Hostname: r.GetHostname(), Product: r.GetProduct(), Build: r.GetBuild(), Architecture: r.GetArchitecture(),
		Memory: r.GetMemoryBytes(), MemoryFree: r.GetMemoryFreeBytes(), SystemDrive: r.GetSystemDrive(),
		DiskFree: r.GetDiskFreeBytes(), PendingReboot: r.GetPendingReboot(), Elevated: r.GetElevated(),
		Simulated: word.Of(r.GetSimulated()), Time: r.GetTime().AsTime(), Virtualization: r.GetVirtualization(),
	}
	return facts, Clock{Ahead: facts.Time.Sub(sent.Add(trip / 2)), GiveOrTake: trip / 2}, nil
}

// wantedFeatures returns only the features that the checks need, since on Windows the request for
// each feature takes seconds.
func wantedFeatures(spec v1alpha1.Kubernetes) []string {
	if combination.WantsHyperV(spec) {
		return []string{containersFeature, hyperVFeature}
	}
	return []string{containersFeature}
}

// Features returns the states of the named features, without the features that this Windows
// does not have.
func (l Looker) Features(ctx context.Context, names ...string) (map[string]platform.FeatureState, error) {
	states := map[string]platform.FeatureState{}
	for _, name := range names {
		reply, err := l.Node.Features.Get(ctx, &agentv1.GetFeaturesRequest{Names: []string{name}})
		switch {
		case errors.Is(err, fault.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			states[name] = platform.FeatureState(word.Of(reply.GetFeatures()[0].GetState()))
		}
	}
	return states, nil
}

// Services returns all services by their name in lower case. The parameter matter has the names,
// also in lower case, of the services that get all fields.
func (l Looker) Services(ctx context.Context, matter ...string) (map[string]Service, error) {
	reply, err := l.Node.Services.List(ctx, &agentv1.ListServicesRequest{})
	if err != nil {
		return nil, err
	}
	all := map[string]Service{}
	for _, s := range reply.GetServices() {
		all[strings.ToLower(s.GetName())] = Service{
			Name: s.GetName(), State: word.Of(s.GetState()), PID: s.GetPid(),
			ExitCode: cmp.Or(s.GetSpecificExitCode(), s.GetExitCode()),
		}
	}
	for _, name := range matter {
		s, ok := all[name]
		if !ok {
			continue
		}
		got, err := l.Node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: name})
		if errors.Is(err, fault.ErrNoService) { // the service was deleted after it was listed
			delete(all, name)
			continue
		}
		if err != nil {
			return nil, err
		}
		all[name] = s.with(got.GetConfig(), got.GetProgram())
	}
	return all, nil
}

func (s Service) with(config *agentv1.ServiceConfig, program *agentv1.ServiceProgram) Service {
	s.Runs, s.Unknown = program.GetCommandLine(), program.GetUnknown()
	s.CommandLine, s.StartType, s.Dependencies = config.GetCommandLine(), word.Of(config.GetStartType()),
		config.GetDependencies()
	if recovery := config.GetRecovery(); recovery != nil {
		restarts := len(recovery.GetRestarts())
		s.Reboots = recovery.GetReboots()
		s.Restarts, s.RestartsRepeat, s.RestartsReset = &restarts, recovery.GetRepeatLast(), recovery.GetReset_().AsDuration()
	}
	return s
}

func (l Looker) processes(ctx context.Context) (map[uint32]platform.Process, error) {
	reply, err := l.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	all := map[uint32]platform.Process{}
	for _, p := range reply.GetProcesses() {
		all[p.GetPid()] = platform.Process{PID: p.GetPid(), ParentPID: p.GetParentPid(), Name: p.GetName(),
			Image: p.GetImage()}
	}
	return all, err
}

// Listeners returns all TCP ports on which a process listens.
func (l Looker) Listeners(ctx context.Context) (all []Listener, err error) {
	reply, err := l.Network.Listeners(ctx, &agentv1.ListenersRequest{})
	for _, at := range reply.GetListeners() {
		all = append(all, Listener{
			Address: at.GetAddress(), Port: uint16(at.GetPort()), PID: at.GetPid(), Process: at.GetProcess(),
			Image: at.GetImage(),
		})
	}
	return all, err
}

// Existing returns the paths that exist on the node, in their order. It asks for all of them at the same
// time: one after the other, they would take longer than all other facts on a slow link.
func (l Looker) Existing(ctx context.Context, paths ...string) ([]string, error) {
	there := make([]bool, len(paths))
	group, ctx := errgroup.WithContext(ctx)
	for i, path := range paths {
		group.Go(func() error {
			_, err := l.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
			if errors.Is(err, fault.ErrNotExist) {
				return nil
			}
			there[i] = err == nil
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var found []string
	for i, path := range paths {
		if there[i] {
			found = append(found, path)
		}
	}
	return found, nil
}

// Runtime returns the name and version of the container runtime that answers on containerd's pipe.
// The error is ErrNotExist if no process serves the pipe.
func (l Looker) Runtime(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	reply, err := l.Network.CRIVersion(ctx, &agentv1.CRIVersionRequest{Pipe: v1alpha1.ContainerdPipe})
	if err != nil {
		return "", err
	}
	return reply.GetRuntimeName() + " " + reply.GetRuntimeVersion(), nil
}

func (l Looker) reach(ctx context.Context, t target) reached {
	r := reached{target: t}
	address := t.address
	if _, err := netip.ParseAddr(t.host()); err != nil && t.planned == "" {
		resolving, cancel := context.WithTimeout(ctx, resolveTimeout)
		defer cancel()
		reply, err := l.Network.Resolve(resolving, &agentv1.ResolveRequest{Name: t.host()})
		if r.addresses = factOf(reply.GetAddresses(), err); err != nil {
			return r
		}
	}
	if t.planned != "" {
		_, port, _ := net.SplitHostPort(t.address)
		address = net.JoinHostPort(t.planned, port)
	}
	reply, err := l.Network.Reach(ctx, &agentv1.ReachRequest{Address: address, Timeout: durationpb.New(reachTimeout)})
	if err != nil {
		r.reach.err = fmt.Errorf("let the node connect to %s: %w", address, err)
		return r
	}
	r.reach.value = platform.Reach{
		Outcome: platform.ReachOutcome(word.Of(reply.GetOutcome())), Address: reply.GetConnected(),
		Source: reply.GetSource(), Took: reply.GetTook().AsDuration(), Detail: reply.GetDetail(),
	}
	return r
}

// Defender reads the settings and policies of Microsoft Defender from the registry. They are
// the values that Get-MpPreference would print.
func (l Looker) Defender(ctx context.Context) (d Defender, err error) {
	status, err := l.Node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "WinDefend"})
	if errors.Is(err, fault.ErrNoService) {
		return Defender{}, nil
	}
	if err != nil {
		return Defender{}, err
	}
	d.Protects = status.GetStatus().GetState() == agentv1.ServiceState_SERVICE_STATE_RUNNING
	for _, key := range []string{setup.DefenderKey, setup.DefenderPolicies} {
		off, err := l.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: key + `\Real-Time Protection`,
			Name: "DisableRealtimeMonitoring"})
		if err != nil && !errors.Is(err, fault.ErrNotExist) {
			return Defender{}, err
		}
		d.Protects = d.Protects && off.GetInteger() == 0
		excluded, err := setup.Exclusions(ctx, l.Node, key)
		if err != nil {
			return Defender{}, err
		}
		d.Exclusions = append(append(d.Exclusions, excluded.ExcludePaths...), excluded.ExcludeProcesses...)
	}
	return d, nil
}
