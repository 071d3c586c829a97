package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// driver creates the Windows machine behind a sandbox.
type driver struct {
	name string
	// check returns an error if this machine lacks something that the request
	// needs. It runs before anything is started.
	check func(request) error
	// start creates the machine, within the background process.
	start func(context.Context, folder, request, agentbin.Agent, *slog.Logger) (running, error)
	// clean ends the processes that a crashed background process may have left.
	clean func(context.Context, folder) error
}

// running is a driver's machine.
type running struct {
	machine    machine
	prefix     string
	kubeconfig string // the cluster's, if a cluster was requested
	section    string // the part of the node file that follows the credentials
	close      func()
}

func drivers() []driver { return []driver{simulatedDriver(), wineDriver()} }

// Drivers returns the names of all drivers, the default first.
func Drivers() []string {
	var names []string
	for _, d := range drivers() {
		names = append(names, d.name)
	}
	return names
}

func driverNamed(name string) (driver, error) {
	all := drivers()
	if i := slices.IndexFunc(all, func(d driver) bool { return d.name == name }); i >= 0 {
		return all[i], nil
	}
	return driver{}, fmt.Errorf("sandbox driver %q: use %s", name, strings.Join(Drivers(), " or "))
}

func simulatedDriver() driver {
	return driver{
		name:  DefaultDriver,
		check: func(request) error { return nil },
		clean: func(context.Context, folder) error { return nil },
		start: startSimulated,
	}
}

// agents returns the programs that run for the stand-in of the agent, for the agent inside this swdt if
// there is one, and for all others. It records the first two.
func (f folder) agents(inside agentbin.Agent) (programs []simulated.Program, err error) {
	standIn, err := StandIn()
	if err != nil {
		return nil, err
	}
	hashes := []string{standIn.Hash}
	if inside.Hash != "" && inside.Hash != standIn.Hash {
		hashes = append(hashes, inside.Hash)
	}
	for _, hash := range hashes {
		programs = append(programs, simulated.AgentProgram(simulated.Agent{Hash: hash, Main: AgentMain(hash)}))
	}
	return append(programs, otherAgent(hashes...)), writeJSON(f.file(agentsFile), hashes)
}

func startSimulated(_ context.Context, f folder, r request, agent agentbin.Agent, log *slog.Logger) (running, error) {
	shell, err := parseShell(r.Shell, "")
	if err != nil {
		return running{}, err
	}
	agents, err := f.agents(agent)
	if err != nil {
		return running{}, err
	}
	options := simulated.Options{
		Hostname: r.Name,
		Programs: agents,
		Internet: true, // Chocolatey's packages are fictitious, but can be installed
		Pods:     r.Pods,
		Log:      log,
	}
	if !r.Cluster {
		section, err := writeSamples(f)
		if err != nil {
			return running{}, err
		}
		options.Preset = simulated.Member
		m := simulated.New(options)
		return running{machine: &simulatedMachine{machine: m, shell: shell}, section: section, close: m.Close}, nil
	}
	cluster, section, err := startSimulatedCluster(f, log)
	if err != nil {
		return running{}, err
	}
	options.Preset = simulated.Minimal // a machine that will join is not a node yet
	m := simulated.New(options)
	cluster.SetKubelets(simulatedKubelet{m})
	stop := func() {}
	if r.KubeProxy {
		if stop, err = startProxier(cluster, m, log); err != nil {
			m.Close()
			cluster.Close()
			return running{}, err
		}
	}
	return running{
		machine: &simulatedMachine{machine: m, shell: shell}, kubeconfig: f.file(kubeconfigFile), section: section,
		close: func() { stop(); m.Close(); cluster.Close() },
	}, nil
}
