package push

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// StatusOptions are the options of Status; one value serves many nodes.
type StatusOptions struct {
	// Sources hashes local sources, to determine whether the node has them. nil:
	// Status makes one.
	Sources *source.Set
	// AgentHash is the hash of the agent that the node runs; "": that of n.
	AgentHash string
}

// StatusReport is the output of `swdt status`.
type StatusReport struct {
	Nodes []NodeStatus `json:"nodes"`
}

// NodeStatus is the state of one node.
type NodeStatus struct {
	Name          string            `json:"name"`
	Result        string            `json:"result"` // ok or failed
	Error         string            `json:"error"`  // why the node's state is unknown
	OS            OS                `json:"os"`
	Agent         Agent             `json:"agent"`
	Architecture  string            `json:"architecture"`
	UptimeSeconds float64           `json:"uptimeSeconds"`
	PendingReboot []string          `json:"pendingReboot"`
	Components    []ComponentStatus `json:"components"`
	// PendingJournal reports whether a transaction is in flight or unfinished.
	PendingJournal bool `json:"pendingJournal"`
	// Transactions are the unfinished transactions, and the finished transactions whose outcome has
	// not been reported yet.
	Transactions []Recovered `json:"transactions"`
}

// Differs reports whether a later status of the same node shows another state, apart from the time that has passed.
func (s NodeStatus) Differs(later NodeStatus) bool {
	timeless := func(s NodeStatus) NodeStatus {
		s.UptimeSeconds, s.Components = 0, slices.Clone(s.Components)
		for i := range s.Components {
			s.Components[i].UptimeSeconds = 0
		}
		return s
	}
	return !reflect.DeepEqual(timeless(s), timeless(later))
}

func newNodeStatus(name, agent string) NodeStatus {
	return NodeStatus{
		Name: name, Agent: Agent{Hash: agent},
		PendingReboot: []string{}, Components: []ComponentStatus{}, Transactions: []Recovered{},
	}
}

// OS is the operating system of the node.
type OS struct {
	Product string `json:"product"`
	Build   string `json:"build"`
}

// Agent is the swdt-agent that answered.
type Agent struct {
	Hash string `json:"hash"`
}

// Drift is the way in which a component differs from the node file.
type Drift string

const (
	DriftNone    Drift = "none"
	DriftBinary  Drift = "binary"  // the binary at the destination differs from the source
	DriftVersion Drift = "version" // another version than the wanted version
	DriftRestart Drift = "restart" // the service's process is older than the file
	DriftMissing Drift = "missing" // nothing at the destination
	DriftUnknown Drift = "unknown" // the source is not available, or the service's program is unknown
	// The service runs, or would run, another file than the one at the destination.
	DriftDestination Drift = "destination"
)

// ComponentStatus is the state of one binary and its service.
type ComponentStatus struct {
	Name           string   `json:"name"`
	Destination    string   `json:"destination"`
	SHA256         string   `json:"sha256"`         // of the file that the service runs; without a service, of the destination
	Version        string   `json:"version"`        // of the same file
	Runs           string   `json:"runs"`           // the file that the service runs, or would run; "": none, or unknown
	Service        *Service `json:"service"`        // null: the component has no service
	PID            uint32   `json:"pid"`            // of the process that runs the file, which a wrapper may have started; 0: none
	UptimeSeconds  float64  `json:"uptimeSeconds"`  // of that process
	PreviousSHA256 string   `json:"previousSha256"` // the hash of the binary that a rollback restores
	Drift          Drift    `json:"drift"`
	Message        string   `json:"message"`
}

// Running reports whether the component has a service, and the service runs.
func (c ComponentStatus) Running() bool {
	return c.Service != nil && c.Service.State == string(platform.Running)
}

// Status inspects the node and changes nothing. It reports on the components of the node file, and
// on each of containerd, kubelet and the service kube-proxy that the node has without a
// provisioner.
func Status(ctx context.Context, n *node.Node, doc config.Document, options StatusOptions,
	r ui.Reporter) (NodeStatus, error) {
	w := newWork(n, doc, Options{Sources: options.Sources, Holder: "-"}, r)
	status := newNodeStatus(doc.Node.Metadata.Name, cmp.Or(options.AgentHash, n.Agent().Hash))
	if len(doc.Node.Spec.Kubernetes.Provisioners) > 0 {
		if err := w.choose(nil); err != nil {
			return status, err
		}
	}
	w.addJoined()
	now, err := w.inspectWithJoined(ctx)
	if err != nil {
		return status, err
	}
	status.takeFacts(now)
	for _, c := range now.components {
		status.Components = append(status.Components, w.componentStatus(ctx, c, now.facts.GetTime().AsTime()))
	}
	return status, nil
}

func (s *NodeStatus) takeFacts(now view) {
	facts := now.facts
	s.OS = OS{Product: facts.GetProduct(), Build: facts.GetBuild()}
	s.Architecture = facts.GetArchitecture()
	s.UptimeSeconds = facts.GetUptime().AsDuration().Seconds()
	s.PendingReboot = append(s.PendingReboot, facts.GetPendingReboot()...)
	for _, t := range now.transactions {
		s.Transactions = append(s.Transactions, recoveredFrom(t, t.GetOutcome()))
		s.PendingJournal = s.PendingJournal || t.GetOutcome() == nil
	}
}

// componentStatus compares a component with the node file. now is a time of the node's clock,
// like the start time of the service's process.
func (w *work) componentStatus(ctx context.Context, c seen, now time.Time) ComponentStatus {
	status := ComponentStatus{
		Name: c.spec.Name, Destination: c.spec.Destination,
		SHA256: c.state.GetSha256(), Version: c.state.GetVersion(),
		Service: c.result.Service, PreviousSHA256: c.state.GetPreviousSha256(),
		Message: c.state.GetError(),
	}
	if runs := cmp.Or(c.state.GetRunning(), c.state.GetStarts()); runs != nil {
		status.Runs = runs.GetPath()
		if !runs.GetDestination() {
			status.SHA256, status.Version = runs.GetSha256(), runs.GetVersion()
		}
	}
	if status.Service != nil {
		status.PID = status.Service.PID
		started := status.Service.Started
		if process := c.state.GetRunning(); process.GetPid() != 0 {
			status.PID, started = process.GetPid(), timeOf(process.GetStarted())
		}
		if started != nil {
			status.UptimeSeconds = max(now.Sub(*started), 0).Seconds()
		}
	}
	switch {
	case c.state.GetFolder():
		status.Message = "the destination is a folder"
		status.Drift = DriftUnknown
	case status.Message != "":
		status.Drift = DriftUnknown
	default:
		var err error
		if status.Drift, err = w.drift(ctx, c); err != nil {
			status.Message = err.Error()
		}
		if status.Drift == DriftRestart {
			status.Message = c.restartHint()
		}
	}
	return status
}

func (c *component) restartHint() string {
	if c.joined { // a joined component has no provisioner, so a push cannot restart its service
		return "its process is older than the file: " + remedy.Command("restart", c.spec.RunBy()) + " restarts it"
	}
	return "its process is older than the file: " + remedy.Command("push", "--only", c.spec.Name) + " restarts it"
}

// drift compares the component with its source, if the source is a local file or the node
// file has the source's hash. It downloads nothing.
func (w *work) drift(ctx context.Context, c seen) (Drift, error) {
	switch other := c.runsOther(); {
	case other != "":
		return DriftDestination, fmt.Errorf("its service runs %s", other)
	case !c.joined && c.state.GetService() == nil && c.runBy(w.components) != "":
		by := c.runBy(w.components)
		return DriftUnknown, fmt.Errorf("service %s runs this file; did you mean name: %s?", by, by)
	case c.state.GetService() != nil && c.state.GetStarts() == nil && c.state.GetRunning() == nil:
		return DriftUnknown, fmt.Errorf("the program of its service is unknown: %s", c.state.GetProgram().GetUnknown())
	case !c.state.GetExists():
		return DriftMissing, nil
	case c.joined && versionDrift(c) == DriftNone && c.state.GetOutdated():
		return DriftRestart, nil
	case c.joined:
		return versionDrift(c), nil
	}
	wanted, err := c.spec.SHA256, error(nil)
	if request := w.request(c.component); wanted == "" && source.IsLocal(request.URL) {
		binary, obtainErr := w.options.Sources.Obtain(ctx, request, ui.Discard{})
		wanted, err = binary.SHA256, obtainErr
	}
	switch {
	case err != nil:
		return DriftUnknown, fmt.Errorf("compare with the source: %w", err)
	case wanted != "" && wanted != c.state.GetSha256():
		return DriftBinary, nil
	case versionDrift(c) == DriftVersion:
		return DriftVersion, nil
	case c.state.GetOutdated():
		return DriftRestart, nil
	case wanted == "":
		return DriftUnknown, nil
	}
	return DriftNone, nil
}

// versionDrift compares only the versions. There is no drift if the node file has no version, or if
// the binary's version is unknown.
func versionDrift(c seen) Drift {
	if wanted, got := c.spec.Version, c.state.GetVersion(); wanted != "" && got != "" && !sameVersion(wanted, got) {
		return DriftVersion
	}
	return DriftNone
}

// NewStatusReport joins the states of many nodes.
func NewStatusReport(results []fleet.Result[NodeStatus]) StatusReport {
	report := StatusReport{Nodes: make([]NodeStatus, len(results))}
	for i, r := range results {
		s := r.Value
		if s.Name == "" {
			s = newNodeStatus(r.Name(), "")
		}
		if s.Result = "ok"; r.Err != nil {
			s.Result, s.Error = string(Failed), r.Err.Error()
		}
		report.Nodes[i] = s
	}
	return report
}
