package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/inspect/programmed"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Sources are the sources of facts.
type Sources struct {
	Node *node.Node
	// Cluster is nil if no kubeconfig was given. In this case, the facts of the cluster are
	// unknown.
	Cluster *cluster.Cluster
	// Services lists the Services of the cluster. All nodes share one; nil: the node gets one of its own.
	Services *programmed.Source
	// Join has the name of the Node object, if the node file sets one.
	Join v1alpha1.Join
	// Provisioners are those of the node file.
	Provisioners []v1alpha1.Provisioner
	// Pipe is the pipe of the container runtime; empty for containerd's default.
	Pipe string
	// Everything also gathers the facts of Patches that take hundreds of calls: for comparisons, and for facts that are kept.
	Everything bool
}

// factTimeout limits the time of each function that inParallel runs, so that a source that does not
// answer cannot delay the report for long.
const factTimeout = 40 * time.Second

// eventsBack is the age up to which events are read.
const eventsBack = 24 * time.Hour

// Gather gathers all facts. It fails only if the facts of the machine itself cannot be
// read, the connection to the node is lost, or ctx ends.
func Gather(ctx context.Context, from Sources) (Facts, error) {
	g := &gatherer{Sources: from, look: preflight.Looker{Node: from.Node}}
	g.facts = Facts{Form: Form, Node: from.Node.Name, Taken: time.Now().UTC()}
	// Some of the other facts depend on the facts of the machine.
	if err := g.machine(ctx); err != nil {
		return g.facts, fmt.Errorf("gather facts of the node: %w", err)
	}
	if err := g.inParallel(ctx, g.services, g.cluster, g.name); err != nil {
		return g.facts, fmt.Errorf("gather facts of the node: %w", err)
	}
	err := g.inParallel(ctx,
		g.containers, g.listeners, g.firewall, g.defender, g.pageFiles, g.updates, g.proxy, g.roots, g.ports, g.interfaces,
		g.events, g.logs, g.programs, g.kubelet, g.credentials, g.containerd, g.runtime, g.networks, g.orphans,
		g.aboutCluster, g.programmed, g.switches)
	if err == nil && from.Everything {
		err = g.inParallel(ctx, g.packages, g.registrations, g.drivers, g.features, g.binaries, g.configuration)
	}
	if err != nil {
		return g.facts, fmt.Errorf("gather facts of the node: %w", err)
	}
	return g.facts, nil
}

// gatherer gathers facts. Methods that run in parallel set different fields.
type gatherer struct {
	Sources
	look  preflight.Looker
	facts Facts

	clock      preflight.Clock
	objectName Fact[string]
}

// inParallel runs all functions at the same time, each limited by factTimeout. It returns an error
// only if the gathering cannot continue.
func (g *gatherer) inParallel(ctx context.Context, all ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, gather := range all {
		group.Go(func() error {
			bounded, cancel := context.WithTimeout(ctx, factTimeout)
			defer cancel()
			return preflight.Fatal(ctx, gather(bounded))
		})
	}
	return group.Wait()
}

// machine gathers the facts of the machine, without which there is no report.
func (g *gatherer) machine(ctx context.Context) error {
	facts, clock, err := g.look.Machine(ctx)
	if err != nil {
		return err
	}
	uuid, err := g.Node.SystemUUID(ctx)
	if err != nil && !errors.Is(err, fault.ErrNotExist) {
		return err
	}
	g.clock = clock
	g.facts.Machine = Known(Machine{
		Hostname: facts.Hostname, Product: facts.Product, Build: facts.Build, Architecture: facts.Architecture,
		UptimeSeconds: facts.Uptime.Seconds(), CPUs: facts.CPUs, Memory: facts.Memory, MemoryFree: facts.MemoryFree,
		SystemDrive: facts.SystemDrive, DiskFree: facts.DiskFree, PendingReboot: facts.PendingReboot,
		Elevated:  facts.Elevated,
		Simulated: facts.Simulated, Time: facts.Time, SystemUUID: uuid, Virtualization: facts.Virtualization,
	})
	return nil
}

// servicesThatMatter returns the names of the services whose configuration is read.
func servicesThatMatter() []string {
	return []string{
		"kubelet", "containerd", "kube-proxy", "csi-proxy", "hns", "vmcompute", "w32time", "calicofelix", "caliconode",
		"antrea-agent", "flanneld",
		"docker", "com.docker.service", "cri-docker", "cri-dockerd", "rke2", "rancher-wins", "k0sworker",
	}
}

func (g *gatherer) services(ctx context.Context) error {
	services, err := g.look.Services(ctx, servicesThatMatter()...)
	g.facts.Services = factOf(services, err)
	if err != nil {
		g.facts.KubeletFlags = Fact[map[string]string]{Unknown: g.facts.Services.Unknown}
		return err
	}
	kubelet, ok := services["kubelet"]
	if !ok {
		g.facts.KubeletFlags = Fact[map[string]string]{Unknown: "there is no service kubelet"}
		return nil
	}
	if kubelet.Line() == "" {
		g.facts.KubeletFlags = Fact[map[string]string]{Unknown: "kubelet's own command line is unknown: " + kubelet.Unknown}
		return nil
	}
	g.facts.KubeletFlags = Known(kubeletFlags(kubelet.Line()))
	return nil
}

// service returns the service with this name, or the zero value if there is no such service or if
// the services are unknown.
func (f *Facts) service(name string) preflight.Service {
	if f.Services.Value == nil {
		return preflight.Service{}
	}
	return (*f.Services.Value)[folded(name)]
}

// name gathers the name of kubelet's Node object.
func (g *gatherer) name(ctx context.Context) error {
	name, err := g.Node.ObjectName(ctx, g.Join)
	g.objectName = factOf(name, err)
	return err
}

func (g *gatherer) containers(ctx context.Context) error {
	const name = "Containers"
	states, err := g.look.Features(ctx, name)
	if err == nil && states[name] == "" {
		err = fmt.Errorf("this Windows has no feature %s", name)
	}
	g.facts.Containers = factOf(states[name], err)
	return err
}

func (g *gatherer) listeners(ctx context.Context) error {
	listeners, err := g.look.Listeners(ctx)
	g.facts.Listeners = factOf(listeners, err)
	return err
}

func (g *gatherer) firewall(ctx context.Context) error {
	rules, err := g.look.Firewall(ctx)
	g.facts.Firewall = factOf(rules, err)
	return err
}

func (g *gatherer) defender(ctx context.Context) error {
	defender, err := g.look.Defender(ctx)
	g.facts.Defender = factOf(defender, err)
	return err
}

const memoryManagement = `HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management`

func (g *gatherer) pageFiles(ctx context.Context) error {
	value, err := g.Node.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: memoryManagement, Name: "PagingFiles"})
	files := []string{}
	// Windows stores a list of names; Wine stores one name as a string
	for _, file := range append(value.GetStrings(), value.GetString_()) {
		if file = strings.TrimSpace(file); file != "" {
			files = append(files, file)
		}
	}
	g.facts.PageFiles = factOf(files, err)
	return err
}

// roots compares the root certificates of the join with the machine's store.
func (g *gatherer) roots(ctx context.Context) error {
	roots, err := join.RootCertificates(ctx, g.Node)
	g.facts.Roots = factOf(roots, err)
	return err
}

const updatePolicy = v1alpha1.UpdatePolicyKey

// updates reads the policy of Windows Update. Without a policy, updates are automatic.
func (g *gatherer) updates(ctx context.Context) error {
	updates := Updates{Automatic: true}
	off, err := g.Node.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: updatePolicy, Name: "NoAutoUpdate"})
	if err == nil && off.GetInteger() == 1 {
		updates.Automatic = false
	}
	options, optionsErr := g.Node.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: updatePolicy, Name: "AUOptions"})
	// With the values 1 to 3, Windows installs no updates by itself.
	if optionsErr == nil && options.GetInteger() < 4 && options.GetInteger() > 0 {
		updates.Automatic = false
	}
	if err = errors.Join(err, optionsErr); onlyMissing(err) {
		err = nil
	}
	g.facts.Updates = factOf(updates, err)
	return err
}

// onlyMissing reports whether err is nil or reports nothing but missing objects.
func onlyMissing(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			if !errors.Is(one, fault.ErrNotExist) {
				return false
			}
		}
		return true
	}
	return err == nil || errors.Is(err, fault.ErrNotExist)
}
