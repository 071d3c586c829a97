package diag

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

type machineFacts struct {
	Hostname       string    `json:"hostname"`
	Product        string    `json:"product"`
	Build          string    `json:"build"`
	Architecture   string    `json:"architecture"`
	BootID         string    `json:"bootID"`
	UptimeSeconds  float64   `json:"uptimeSeconds"`
	CPUs           int32     `json:"cpus"`
	Memory         uint64    `json:"memoryBytes"`
	MemoryFree     uint64    `json:"memoryFreeBytes"`
	DiskFree       uint64    `json:"diskFreeBytes"`
	PendingReboot  []string  `json:"pendingReboot"`
	Elevated       bool      `json:"elevated"`
	Virtualization bool      `json:"virtualization"`
	Simulated      string    `json:"simulated,omitempty"`
	Time           time.Time `json:"time"`
	ClockSkew      float64   `json:"clockSkewSeconds"`
}

func machine(ctx context.Context, t *Task) error {
	asked := time.Now()
	reply, err := t.Node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return err
	}
	middle := asked.Add(time.Since(asked) / 2)
	facts := machineFacts{
		Hostname: reply.GetHostname(), Product: reply.GetProduct(), Build: reply.GetBuild(),
		Architecture: reply.GetArchitecture(),
		BootID:       reply.GetBootId(), UptimeSeconds: reply.GetUptime().AsDuration().Seconds(), CPUs: reply.GetCpus(),
		Memory: reply.GetMemoryBytes(), MemoryFree: reply.GetMemoryFreeBytes(), DiskFree: reply.GetDiskFreeBytes(),
		PendingReboot: reply.GetPendingReboot(), Elevated: reply.GetElevated(),
		Virtualization: reply.GetVirtualization(),
		Simulated:      word.Of(reply.GetSimulated()), Time: reply.GetTime().AsTime(),
		ClockSkew: reply.GetTime().AsTime().Sub(middle).Seconds(),
	}
	return t.Table("machine", facts, func(w io.Writer) error {
		return ui.Lines(w, [][]string{
			{"hostname", facts.Hostname}, {"Windows", facts.Product + " " + facts.Build},
			{"architecture", facts.Architecture},
			{"up", ui.Age(reply.GetUptime().AsDuration())}, {"processors", strconv.Itoa(int(facts.CPUs))},
			{"memory", ui.Size(int64(facts.MemoryFree)) + " free of " + ui.Size(int64(facts.Memory))},
			{"disk", ui.Size(int64(facts.DiskFree)) + " free on " + reply.GetSystemDrive()},
			{"pending reboot", cmp.Or(strings.Join(facts.PendingReboot, ", "), "no")},
			{"administrator", strconv.FormatBool(facts.Elevated)},
			{"virtualization", strconv.FormatBool(facts.Virtualization)},
			{"clock", fmt.Sprintf("%s, %+.1f s from your machine's", facts.Time.UTC().Format(time.RFC3339), facts.ClockSkew)},
			{"simulated", facts.Simulated},
		})
	})
}

// detailed returns the names of the services whose settings are also stored.
func detailed() []string {
	return []string{
		"kubelet", "containerd", "kube-proxy", "docker", "sshd", "csi-proxy", "flanneld", "rancher-wins", "rke2",
		"CalicoNode", "CalicoFelix", "CalicoConfd", "antrea-agent", "ovs-vswitchd", "ovsdb-server",
		"hns", "vmcompute", "vmms", "vfpext", "dnscache", "iphlpsvc", "BFE", "Dhcp", "hvsics", "NetSetupSvc",
		"mpssvc", "nvagent", "nsi",
		"SharedAccess", "W32Time", "EventLog", "WinDefend", "TermService",
	}
}

type serviceRow struct {
	Name         string   `json:"name"`
	DisplayName  string   `json:"displayName,omitempty"`
	State        string   `json:"state"`
	PID          uint32   `json:"pid,omitempty"`
	ExitCode     uint32   `json:"exitCode,omitempty"`
	SpecificCode uint32   `json:"specificExitCode,omitempty"`
	StartType    string   `json:"startType,omitempty"`
	Account      string   `json:"account,omitempty"`
	CommandLine  string   `json:"commandLine,omitempty"`
	Dependencies []string `json:"dependencies,omitempty"`
	Restarts     []string `json:"restarts,omitempty"`
}

func services(ctx context.Context, t *Task) error {
	reply, err := t.Node.Services.List(ctx, &agentv1.ListServicesRequest{})
	if err != nil {
		return err
	}
	var rows []serviceRow
	var failed []error
	for _, s := range reply.GetServices() {
		row := serviceRow{
			Name: s.GetName(), DisplayName: s.GetDisplayName(), State: word.Of(s.GetState()), PID: s.GetPid(),
			ExitCode: s.GetExitCode(), SpecificCode: s.GetSpecificExitCode(),
		}
		if slices.ContainsFunc(detailed(), func(name string) bool { return strings.EqualFold(name, row.Name) }) {
			failed = append(failed, row.configure(ctx, t.Node.Services))
		}
		rows = append(rows, row)
	}
	err = t.Table("services", rows, func(w io.Writer) error {
		var lines [][]string
		for _, r := range rows {
			pid := ""
			if r.PID != 0 {
				pid = strconv.Itoa(int(r.PID))
			}
			lines = append(lines, []string{r.Name, r.State, r.StartType, pid, exitCode(r), r.CommandLine})
		}
		return ui.Table(w, []string{"SERVICE", "STATE", "START", "PID", "EXIT", "COMMAND LINE"}, lines)
	})
	return errors.Join(append(failed, err)...)
}

func exitCode(r serviceRow) string {
	switch {
	case r.SpecificCode != 0:
		return fmt.Sprintf("%d/%d", r.ExitCode, r.SpecificCode)
	case r.ExitCode != 0:
		return strconv.Itoa(int(r.ExitCode))
	}
	return ""
}

func (r *serviceRow) configure(ctx context.Context, client agentv1.ServicesClient) error {
	reply, err := client.Get(ctx, &agentv1.GetServiceRequest{Name: r.Name})
	if errors.Is(err, fault.ErrNoService) {
		return nil // the service was removed after it was listed
	}
	if err != nil {
		return fmt.Errorf("read service %s: %w", r.Name, err)
	}
	c := reply.GetConfig()
	r.StartType, r.Account, r.CommandLine, r.Dependencies = word.Of(c.GetStartType()), c.GetAccount(), c.GetCommandLine(),
		c.GetDependencies()
	for _, d := range c.GetRecovery().GetRestarts() {
		r.Restarts = append(r.Restarts, d.AsDuration().String())
	}
	if c.GetRecovery().GetRepeatLast() {
		r.Restarts = append(r.Restarts, "repeated")
	}
	return nil
}

type componentRow struct {
	Name            string `json:"name"`
	Path            string `json:"path"`
	Exists          bool   `json:"exists"`
	Version         string `json:"version,omitempty"`
	SHA256          string `json:"sha256,omitempty"`
	Size            int64  `json:"sizeBytes,omitempty"`
	Previous        string `json:"previousSha256,omitempty"`
	PreviousVersion string `json:"previousVersion,omitempty"`
	Error           string `json:"error,omitempty"`
}

// components stores the components of the node file, and the programs of the services of a
// Kubernetes node.
func components(ctx context.Context, t *Task) error {
	request := &agentv1.InspectRequest{}
	add := func(name, path string) {
		for _, c := range request.Components {
			if strings.EqualFold(c.GetDestination(), path) {
				return
			}
		}
		c := &agentv1.InspectComponent{Name: name, Destination: path}
		if slices.Contains([]string{"kubelet", "containerd", "kube-proxy"}, strings.ToLower(name)) {
			c.AskVersion = true
		}
		request.Components = append(request.Components, c)
	}
	for _, p := range t.Document.Node.Spec.Kubernetes.Provisioners {
		add(p.Name, p.Destination)
	}
	for _, name := range []string{"kubelet", "containerd", "kube-proxy", "csi-proxy", "antrea-agent", "flanneld"} {
		service, err := t.service(ctx, name)
		if err != nil {
			return err
		}
		line := cmp.Or(service.GetProgram().GetCommandLine(), service.GetConfig().GetCommandLine())
		if program := programOf(line, name); program != "" {
			add(name, program)
		}
	}
	reply, err := t.Node.Swap.Inspect(ctx, request)
	if err != nil {
		return err
	}
	var rows []componentRow
	for i, c := range reply.GetComponents() {
		rows = append(rows, componentRow{
			Name: c.GetName(), Path: request.GetComponents()[i].GetDestination(), Exists: c.GetExists(), Version: c.GetVersion(),
			SHA256: c.GetSha256(), Size: c.GetSize(),
			Previous: c.GetPreviousSha256(), PreviousVersion: c.GetPreviousVersion(), Error: c.GetError(),
		})
	}
	return t.Table("components", rows, func(w io.Writer) error {
		var lines [][]string
		for _, r := range rows {
			line := []string{r.Name, "not there", "", "", r.Path}
			if r.Exists {
				line[1], line[2], line[3] = ui.Version(r.Version), ui.Hash(r.SHA256), ui.Size(r.Size)
			}
			lines = append(lines, line)
		}
		return ui.Table(w, []string{"COMPONENT", "VERSION", "SHA-256", "SIZE", "PATH"}, lines)
	})
}

// service returns a service's settings, or nil if there is no such service.
func (t *Task) service(ctx context.Context, name string) (*agentv1.ServiceReply, error) {
	reply, err := t.Node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: name})
	if errors.Is(err, fault.ErrNoService) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read service %s: %w", name, err)
	}
	return reply, nil
}

// programOf returns the path of the program that a command line runs. If the command line
// has a program called name, perhaps after a program that wraps it, programOf returns that
// program. Otherwise it returns the first program.
func programOf(line, name string) string {
	args := commandline.Split(line)
	for _, arg := range args {
		path := strings.ReplaceAll(arg, "/", `\`)
		if strings.HasSuffix(strings.ToLower(path), `\`+strings.ToLower(name)+".exe") {
			return path
		}
	}
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func environment(ctx context.Context, t *Task) error {
	reply, err := t.Node.Settings.GetEnvironment(ctx, &agentv1.GetEnvironmentRequest{})
	if err != nil {
		return err
	}
	document, lines := map[string]string{}, [][]string{}
	for _, v := range reply.GetVariables() {
		document[v.GetName()] = v.GetValue()
		lines = append(lines, []string{v.GetName(), v.GetValue()})
	}
	return t.Table("environment", document,
		func(w io.Writer) error { return ui.Table(w, []string{"VARIABLE", "VALUE"}, lines) })
}

func hosts(ctx context.Context, t *Task) error {
	reply, err := t.Node.Settings.GetHosts(ctx, &agentv1.GetHostsRequest{})
	if err != nil {
		return err
	}
	document, lines := map[string]string{}, [][]string{}
	for _, e := range reply.GetEntries() {
		document[e.GetName()] = e.GetAddress()
		lines = append(lines, []string{e.GetName(), e.GetAddress()})
	}
	return t.Table("hosts", document,
		func(w io.Writer) error { return ui.Table(w, []string{"NAME", "ADDRESS"}, lines) })
}

func features(ctx context.Context, t *Task) error {
	document, lines := map[string]string{}, [][]string{}
	var failed []error
	for _, name := range []string{"Containers", "Microsoft-Hyper-V", "VirtualMachinePlatform",
		"HostNetworkingService"} {
		reply, err := t.Node.Features.Get(ctx, &agentv1.GetFeaturesRequest{Names: []string{name}})
		state := "no such feature"
		switch {
		case errors.Is(err, fault.ErrNotExist):
		case err != nil:
			state = "unknown"
			failed = append(failed, fmt.Errorf("read feature %s: %w", name, err))
		case len(reply.GetFeatures()) == 1:
			state = word.Of(reply.GetFeatures()[0].GetState())
		}
		document[name] = state
		lines = append(lines, []string{name, state})
	}
	err := t.Table("features", document,
		func(w io.Writer) error { return ui.Table(w, []string{"FEATURE", "STATE"}, lines) })
	return errors.Join(append(failed, err)...)
}

func processes(ctx context.Context, t *Task) error {
	reply, err := t.Node.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	if err != nil {
		return err
	}
	var lines [][]string
	for _, p := range reply.GetProcesses() {
		lines = append(lines, []string{
			strconv.Itoa(int(p.GetPid())), strconv.Itoa(int(p.GetParentPid())), p.GetName(),
			ui.Seconds(p.GetCpu().AsDuration()),
			ui.Size(int64(p.GetMemoryBytes())), p.GetImage(),
		})
	}
	return t.Table("processes", reply.GetProcesses(), func(w io.Writer) error {
		return ui.Table(w, []string{"PID", "PARENT", "NAME", "CPU TIME", "MEMORY", "IMAGE"}, lines)
	})
}
