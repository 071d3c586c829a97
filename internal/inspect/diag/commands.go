package diag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/inspect/capture"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Command is a program of the node whose output is stored.
type Command struct {
	Name   string
	About  string
	Line   []string
	Script string // a PowerShell script instead of Line, for facts that no program prints
	// Choose returns the line that the node's Windows has; nil: Line.
	Choose  func(context.Context, *Task) []string
	From    Profile
	Timeout time.Duration
}

// Commands returns all commands. To add a command, add an entry.
func Commands() []Command {
	const ctr = `C:\Program Files\containerd\bin\ctr.exe`
	return []Command{
		{Name: "ipconfig", About: "addresses, gateways and DNS of all compartments",
			Line: []string{"ipconfig", "/allcompartments", "/all"}},
		{Name: "dynamic-ports-tcp", About: "the range of TCP ports for outgoing connections",
			Line: []string{"netsh", "int", "ipv4", "show", "dynamicportrange", "tcp"}},
		{Name: "excluded-ports-tcp", About: "TCP ports that are reserved",
			Line: []string{"netsh", "int", "ipv4", "show", "excludedportrange", "tcp"}},
		{Name: "routes", About: "the routing table", Line: []string{"route", "print"}},
		{Name: "time", About: "the source of the clock", Line: []string{"w32tm", "/query", "/status"}},

		{Name: "dynamic-ports-udp", About: "the range of UDP ports for outgoing packets",
			Line: []string{"netsh", "int", "ipv4", "show", "dynamicportrange", "udp"}, From: Network},
		{Name: "excluded-ports-udp", About: "UDP ports that are reserved",
			Line: []string{"netsh", "int", "ipv4", "show", "excludedportrange", "udp"}, From: Network},
		{Name: "arp", About: "neighbours", Line: []string{"arp", "-a"}, From: Network},
		{Name: "neighbours", About: "neighbours of all interfaces",
			Line: []string{"netsh", "int", "ipv4", "show", "neighbors"}, From: Network},
		{Name: "interfaces", About: "interfaces with their MTU and metric",
			Line: []string{"netsh", "int", "ipv4", "show", "interfaces"}, From: Network},
		{Name: "subinterfaces", About: "MTU and bytes of each interface",
			Line: []string{"netsh", "int", "ipv4", "show", "subinterfaces"}, From: Network},
		{Name: "ip-statistics", About: "counters of IP, TCP and UDP", Line: []string{"netstat", "-s"}, From: Network},
		{Name: "proxy", About: "the proxy of Windows' services", Line: []string{"netsh", "winhttp", "show", "proxy"},
			From: Network},
		{Name: "firewall-profiles", About: "the firewall's profiles",
			Line: []string{"netsh", "advfirewall", "show", "allprofiles"}, From: Network},
		{Name: "wfp-events", About: "packets that the filtering platform dropped",
			Line: []string{"netsh", "wfp", "show", "netevents", "file=-"}, From: Network, Timeout: time.Minute},
		{Name: "hnsdiag", About: "the host network service", Line: []string{"hnsdiag", "list", "all", "-d"},
			From: Network},
		{Name: "hcsdiag", About: "compute systems", Line: []string{"hcsdiag", "list"}, From: Network},
		{Name: "nvspinfo", About: "adapters and ports of the virtual switch",
			Line: []string{"nvspinfo", "-a", "-i", "-h", "-D", "-p", "-d", "-m", "-q"}, From: Network},
		{Name: "nmscrub", About: "the virtual switch's settings", Line: []string{"nmscrub", "-a", "-n", "-t"},
			From: Network},
		{Name: "nmbind", About: "bindings of adapters", Line: []string{"nmbind"}, From: Network},
		{Name: "pktmon-components", About: "the components that packets pass", Line: []string{"pktmon", "list"},
			Choose: listOfComponents, From: Network},
		{Name: "adapters", About: "network adapters, hidden ones too",
			Script: "Get-NetAdapter -IncludeHidden | Format-List * | Out-String -Width 400", From: Network,
			Timeout: time.Minute},

		{Name: "wfp-state", About: "the filtering platform's state",
			Line: []string{"netsh", "wfp", "show", "state", "file=-"}, From: Full, Timeout: time.Minute},
		{Name: "wfp-filters", About: "the filtering platform's filters",
			Line: []string{"netsh", "wfp", "show", "filters", "file=-"}, From: Full, Timeout: time.Minute},
		{Name: "systeminfo", About: "the machine and its hotfixes", Line: []string{"systeminfo"}, From: Full,
			Timeout: time.Minute},
		{Name: "packages", About: "the installed packages of Windows",
			Line: []string{"dism", "/online", "/english", "/get-packages", "/format:table"}, From: Full,
			Timeout: 2 * time.Minute},
		{Name: "drivers", About: "drivers and their state", Line: []string{"driverquery", "/v"}, From: Full},
		{Name: "boot", About: "how Windows boots; test signing", Line: []string{"bcdedit", "/enum"}, From: Full},
		{Name: "service-control", About: "services and drivers, as sc.exe shows them",
			Line: []string{"sc.exe", "queryex", "type=", "all", "state=", "all"}, From: Full},
		{Name: "ctr-containers", About: "containerd's containers",
			Line: []string{ctr, "-n", "k8s.io", "containers", "ls"}, From: Full},
		{Name: "ctr-tasks", About: "containerd's tasks", Line: []string{ctr, "-n", "k8s.io", "tasks", "ls"},
			From: Full},
		{Name: "ctr-snapshots", About: "containerd's snapshots",
			Line: []string{ctr, "-n", "k8s.io", "snapshots", "--snapshotter", "windows", "ls"}, From: Full},
		{Name: "defender", About: "Defender's exclusions",
			Script: "Get-MpPreference | Select-Object 'Exclusion*', 'DisableRealtimeMonitoring' | Format-List | " +
				"Out-String -Width 400", From: Full, Timeout: time.Minute},
	}
}

// mostOutput is the maximum number of bytes of a command's output that are stored.
const mostOutput = 16 << 20

// collector returns the collector that stores the command's output.
func (c Command) collector() Collector {
	return Collector{Name: c.Name, About: c.About, From: c.From, Timeout: c.Timeout,
		Collect: func(ctx context.Context, t *Task) error {
			line := c.Line
			if c.Choose != nil {
				line = c.Choose(ctx, t)
			}
			source := strings.Join(line, " ")
			if c.Script != "" {
				args, ok := powershell.Args(c.Script)
				if !ok {
					return fmt.Errorf("the script of %s is too long for a command line", c.Name)
				}
				line, source = append([]string{powershell.Program}, args...), "PowerShell: "+c.Script
			}
			return t.write(FileRecord{Path: "commands/" + c.Name + ".txt", From: source}, mostOutput,
				func(w io.Writer) error {
					return t.run(ctx, line, w)
				})
		}}
}

// listOfComponents returns the line that lists pktmon's components: Windows Server 2019 has it below another command.
func listOfComponents(ctx context.Context, t *Task) []string {
	d, err := capture.Learn(ctx, t.Node.Processes)
	if err != nil { // the command itself fails for the same reason
		return []string{"pktmon", "list"}
	}
	return append([]string{"pktmon"}, d.List...)
}

// ExitError reports a command that ended with an exit code other than 0.
type ExitError struct {
	Program string
	Code    int
	Output  string // the end of the command's stderr
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s ended with exit code %d", e.Program, e.Code)
	if e.Output != "" {
		text += ": " + e.Output
	}
	return text
}

// NoProgramError reports a program that the node does not have.
type NoProgramError struct {
	Program string
	Err     error
}

func (e *NoProgramError) Error() string { return "the node has no " + e.Program }
func (e *NoProgramError) Unwrap() error { return e.Err }

// run runs a program of the node. It writes the program's stdout to w, and then the end of the
// program's stderr.
func (t *Task) run(ctx context.Context, line []string, w io.Writer) error {
	complaints := &ending{}
	code, err := command.Run(ctx, t.Node.Processes, &agentv1.RunCommand{Path: line[0], Args: line[1:]},
		command.Streams{Stdout: w, Stderr: complaints})
	if errors.Is(err, fault.ErrNotExist) {
		return &NoProgramError{Program: line[0], Err: err}
	}
	if err != nil {
		return err
	}
	text := complaints.text()
	if text != "" {
		if _, err := fmt.Fprintf(w, "\n[stderr]\n%s\n", text); err != nil {
			return err
		}
	}
	if code != 0 {
		return &ExitError{Program: line[0], Code: code, Output: oneLine(text)}
	}
	return nil
}

// ending is a writer that keeps the end of a text.
type ending struct{ kept []byte }

func (e *ending) Write(data []byte) (int, error) {
	const most = 4 << 10
	e.kept = append(e.kept, data...)
	e.kept = e.kept[max(0, len(e.kept)-most):]
	return len(data), nil
}

func (e *ending) text() string { return strings.TrimSpace(string(e.kept)) }

// oneLine returns a text on one line, short enough for a table.
func oneLine(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
