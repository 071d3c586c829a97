package preflight

import (
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
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
)

// reachTimeout is how long the node may take to connect to the API server, and
// resolveTimeout how long to resolve its name: Windows asks other hosts too for
// one that DNS does not know.
const reachTimeout, resolveTimeout = 5 * time.Second, 20 * time.Second

// looker asks a node for facts. What cannot be had is unknown; only the loss of
// the node is an error.
type looker struct {
	*node.Node
	spec v1alpha1.Kubernetes
}

func gatherNode(ctx context.Context, in Input, targets []target) (*nodeFacts, error) {
	l := looker{in.Node, in.Spec}
	f := &nodeFacts{targets: make([]reached, len(targets))}
	group, all := errgroup.WithContext(ctx)
	look := func(at func(context.Context) error) {
		group.Go(func() error { return fatal(all, at(all)) })
	}
	look(func(ctx context.Context) (err error) {
		f.machine, f.clock, err = l.machine(ctx)
		if err != nil { // without these there is nothing to tell
			err = &noFactsError{err}
		}
		return err
	})
	look(func(ctx context.Context) error { f.features = learn(l.features(ctx)); return f.features.err })
	look(func(ctx context.Context) error { f.services = learn(l.services(ctx)); return f.services.err })
	look(func(ctx context.Context) error { f.processes = learn(l.processes(ctx)); return f.processes.err })
	look(func(ctx context.Context) error { f.listeners = learn(l.listeners(ctx)); return f.listeners.err })
	look(func(ctx context.Context) error { f.files = learn(l.existing(ctx, leftovers())); return f.files.err })
	look(func(ctx context.Context) error { f.defender = learn(l.defender(ctx)); return f.defender.err })
	look(func(ctx context.Context) error { f.runtime = learn(l.runtime(ctx)); return f.runtime.err })
	look(func(ctx context.Context) (err error) { f.uuid, err = in.Node.SystemUUID(ctx); return err })
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

// noFactsError is the failure of the one call that nothing goes without.
type noFactsError struct{ err error }

func (e *noFactsError) Error() string { return e.err.Error() }
func (e *noFactsError) Unwrap() error { return e.err }

// fatal is err where it ends the run.
func fatal(ctx context.Context, err error) error {
	var lost *node.LostError
	var noFacts *noFactsError
	if ctx.Err() != nil || errors.As(err, &lost) || errors.As(err, &noFacts) {
		return err
	}
	return nil
}

func (l looker) machine(ctx context.Context) (host.Facts, clock, error) {
	sent := time.Now()
	r, err := l.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return host.Facts{}, clock{}, err
	}
	trip := time.Since(sent)
	facts := host.Facts{
		Hostname: r.GetHostname(), Product: r.GetProduct(), Build: r.GetBuild(), Architecture: r.GetArchitecture(),
		Memory: r.GetMemoryBytes(), MemoryFree: r.GetMemoryFreeBytes(), SystemDrive: r.GetSystemDrive(),
		DiskFree: r.GetDiskFreeBytes(), PendingReboot: r.GetPendingReboot(), Elevated: r.GetElevated(),
		Simulated: r.GetSimulated(), Time: r.GetTime().AsTime(), Virtualization: r.GetVirtualization(),
	}
	return facts, clock{ahead: facts.Time.Sub(sent.Add(trip / 2)), giveOrTake: trip / 2}, nil
}

// features asks for those that are wanted only: on Windows, each takes seconds.
func (l looker) features(ctx context.Context) (map[string]host.FeatureState, error) {
	names := []string{containersFeature}
	if wantsHyperV(l.spec) {
		names = append(names, hyperVFeature)
	}
	states := map[string]host.FeatureState{}
	for _, name := range names {
		reply, err := l.Features.Get(ctx, &agentv1.GetFeaturesRequest{Names: []string{name}})
		switch {
		case errors.Is(err, host.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			states[name] = host.FeatureState(reply.GetFeatures()[0].GetState())
		}
	}
	return states, nil
}

// services are all services, those that matter with their command line.
func (l looker) services(ctx context.Context) (map[string]service, error) {
	reply, err := l.Services.List(ctx, &agentv1.ListServicesRequest{})
	if err != nil {
		return nil, err
	}
	all := map[string]service{}
	for _, s := range reply.GetServices() {
		all[strings.ToLower(s.GetName())] = service{name: s.GetName(), state: s.GetState(), pid: s.GetPid()}
	}
	for _, name := range servicesThatMatter() {
		s, ok := all[name]
		if !ok {
			continue
		}
		got, err := l.Services.Get(ctx, &agentv1.GetServiceRequest{Name: name})
		if errors.Is(err, host.ErrNoService) { // gone since
			delete(all, name)
			continue
		}
		if err != nil {
			return nil, err
		}
		s.commandLine = got.GetConfig().GetCommandLine()
		all[name] = s
	}
	return all, nil
}

func (l looker) processes(ctx context.Context) (map[uint32]host.Process, error) {
	reply, err := l.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	all := map[uint32]host.Process{}
	for _, p := range reply.GetProcesses() {
		all[p.GetPid()] = host.Process{PID: p.GetPid(), ParentPID: p.GetParentPid(), Name: p.GetName(), Image: p.GetImage()}
	}
	return all, err
}

func (l looker) listeners(ctx context.Context) (all []listener, err error) {
	reply, err := l.Network.Listeners(ctx, &agentv1.ListenersRequest{})
	for _, at := range reply.GetListeners() {
		all = append(all, listener{
			address: at.GetAddress(), port: uint16(at.GetPort()), pid: at.GetPid(), process: at.GetProcess(), image: at.GetImage(),
		})
	}
	return all, err
}

// existing are those of the paths that exist.
func (l looker) existing(ctx context.Context, paths []string) (found []string, err error) {
	for _, path := range paths {
		_, err := l.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
		switch {
		case errors.Is(err, host.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			found = append(found, path)
		}
	}
	return found, nil
}

// runtime is the container runtime that answers on containerd's pipe.
func (l looker) runtime(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	reply, err := l.Network.CRIVersion(ctx, &agentv1.CRIVersionRequest{Pipe: v1alpha1.ContainerdPipe})
	if err != nil {
		return "", err
	}
	return reply.GetRuntimeName() + " " + reply.GetRuntimeVersion(), nil
}

func (l looker) reach(ctx context.Context, t target) reached {
	r := reached{target: t}
	address := t.address
	if _, err := netip.ParseAddr(t.host()); err != nil && t.planned == "" {
		resolving, cancel := context.WithTimeout(ctx, resolveTimeout)
		defer cancel()
		reply, err := l.Network.Resolve(resolving, &agentv1.ResolveRequest{Name: t.host()})
		if r.addresses = learn(reply.GetAddresses(), err); err != nil {
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
	r.reach.value = host.Reach{
		Outcome: host.ReachOutcome(reply.GetOutcome()), Address: reply.GetConnected(),
		Took: reply.GetTook().AsDuration(), Detail: reply.GetDetail(),
	}
	return r
}

// defender reads what Get-MpPreference would say out of the registry, where its
// settings and its policies are.
func (l looker) defender(ctx context.Context) (d defender, err error) {
	status, err := l.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "WinDefend"})
	if errors.Is(err, host.ErrNoService) {
		return defender{}, nil
	}
	if err != nil {
		return defender{}, err
	}
	d.protects = status.GetStatus().GetState() == string(host.Running)
	for _, key := range []string{
		`HKLM\SOFTWARE\Microsoft\Windows Defender`, `HKLM\SOFTWARE\Policies\Microsoft\Windows Defender`,
	} {
		off, err := l.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: key + `\Real-Time Protection`, Name: "DisableRealtimeMonitoring"})
		if err != nil && !errors.Is(err, host.ErrNotExist) {
			return defender{}, err
		}
		d.protects = d.protects && off.GetInteger() == 0
		for _, kind := range []string{"Paths", "Processes"} {
			list, err := l.Registry.List(ctx, &agentv1.RegistryListRequest{Key: key + `\Exclusions\` + kind})
			if err != nil && !errors.Is(err, host.ErrNotExist) {
				return defender{}, err
			}
			for _, value := range list.GetValues() {
				d.exclusions = append(d.exclusions, value.GetName())
			}
		}
	}
	return d, nil
}
