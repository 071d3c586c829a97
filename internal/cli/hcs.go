package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/hcs"
	"github.com/swdt-dev/swdt/internal/hns"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) hcsCommand() *cobra.Command {
	cmd := group("hcs", "The node's compute systems: containers and utility VMs",
		a.hcsListCommand(), a.hcsReadCommand(), a.hcsExecCommand(), a.hcsKillCommand())
	cmd.Long = `What Windows' Host Compute Service runs: containers, and the utility VMs of pods with
Hyper-V isolation; each with its pod, as the node's container runtime tells.
HostProcess containers are processes of the node and no compute systems.`
	cmd.Example = examples(
		"hcs list", "",
		`hcs read default/web 'C:\Windows\System32\drivers\etc\hosts'`, "a file of a container",
		"hcs exec default/web -- ipconfig", "a command in it",
		"hcs kill 5b3e71a0 --yes", "one that its runtime cannot end",
	)
	return cmd
}

func (a *app) hcsListCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use: "list [flags]", Short: "All compute systems, with their pods and what they use",
		Long: `All compute systems, with their pods and what they use.

ISOLATION is hyper-v for a utility VM and what is in it, else process. MEMORY is the
private working set and CPU TIME the time used so far, as the Host Compute Service
counts them; what it does not tell is -. JSON and YAML have the processes in each
system, and in "raw" the service's own document.`,
		Example: examples("hcs list", "", "hcs list -o json", "for scripts"),
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runHCSList(cmd.Context()) },
	})
}

// computeSystems are a node's, and whose they are.
type computeSystems struct {
	systems []hcs.System
	owners  []hcs.Owner
	runtime bool // whether the runtime told whose they are
}

// systemsOf asks a node. That its runtime does not answer is said, and no error.
func systemsOf(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (found computeSystems, err error) {
	found.systems, err = hcs.List(ctx, n.Compute)
	if errors.Is(err, host.ErrNotSupported) {
		err = fmt.Errorf("%w; this Windows has no Host Compute Service, which comes with the feature Containers: `swdt setup` installs it", err)
	}
	if err != nil {
		return found, err
	}
	err = withRuntime(ctx, n, doc, r, func(runtime runtimev1.RuntimeServiceClient) error {
		found.owners, err = hcs.Owners(ctx, runtime)
		return err
	})
	if ctx.Err() != nil {
		return found, ctx.Err()
	}
	if found.runtime = err == nil; err != nil {
		r.Warn("the container runtime does not tell whose compute systems these are: %v", err)
	}
	return found, nil
}

// owner is NAMESPACE/POD and the container of a compute system.
func (c computeSystems) owner(s hcs.System) (pod, container string) {
	o, ok := hcs.OwnerOf(c.owners, s)
	switch {
	case ok:
		return o.Pod, o.Container
	case c.runtime:
		return hns.None, ""
	}
	return hns.Unknown, ""
}

// hcsSystem is a compute system and whose it is.
type hcsSystem struct {
	hcs.System
	Pod       string `json:"pod"`
	Container string `json:"container"`
}

// hcsReport is the result of `swdt hcs list`.
type hcsReport struct {
	Nodes []hcsNode `json:"nodes"`
}

type hcsNode struct {
	frame
	Systems []hcsSystem `json:"systems"`
}

// names implements namer.
func (r hcsReport) names() (all []string) {
	for _, n := range r.Nodes {
		for _, s := range n.Systems {
			all = append(all, "computesystem/"+s.ID)
		}
	}
	return all
}

func (a *app) runHCSList(ctx context.Context) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	results := onNodes(ctx, s, systemsOf)
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	report := hcsReport{Nodes: []hcsNode{}}
	for _, result := range results {
		of := hcsNode{frame: newFrame(result.Name(), resultOK, result.Err), Systems: []hcsSystem{}}
		for _, system := range result.Value.systems {
			pod, container := result.Value.owner(system)
			of.Systems = append(of.Systems, hcsSystem{system, pod, container})
		}
		report.Nodes = append(report.Nodes, of)
	}
	err = a.print(report, func(p *ui.Page) error {
		return writeTables(p, results, func(c computeSystems) hns.Table { return c.table(p.Wide) })
	})
	if err != nil {
		return err
	}
	return failed
}

// table shows the systems; wide shows whole IDs.
func (c computeSystems) table(wide bool) hns.Table {
	t := hns.Table{Nothing: "no compute systems", Header: []string{"ID", "POD", "CONTAINER", "ISOLATION", "STATE", "MEMORY", "CPU TIME", "PROCESSES", "OWNER"}}
	for _, s := range c.systems {
		pod, container := c.owner(s)
		if container == "" && pod != hns.None && pod != hns.Unknown {
			container = "(sandbox)"
		}
		id, memory, cpu, processes := hcs.Short(s.ID), "", "", ""
		if wide {
			id = s.ID
		}
		if s.Memory != nil {
			memory = ui.Size(int64(s.Memory.PrivateWorkingSet))
		}
		if s.CPU != nil {
			cpu = ui.Seconds(s.CPU.Total)
		}
		if len(s.Processes) > 0 {
			processes = strconv.Itoa(len(s.Processes))
		}
		t.Rows = append(t.Rows, []string{
			id, pod, container, string(s.Isolation), strings.ToLower(s.State), memory, cpu, processes, ownerName(s.Owner),
		})
	}
	return t
}

// ownerName is a program's name without what all have.
func ownerName(program string) string {
	return strings.TrimSuffix(path.Base(strings.ReplaceAll(program, `\`, "/")), ".exe")
}
