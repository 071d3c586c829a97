package push

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// Result is the outcome of a push to a node.
type Result string

const (
	Changed    Result = "changed"
	Unchanged  Result = "unchanged"
	Failed     Result = "failed"
	RolledBack Result = "rolledBack"
)

// Action is the change that was made to a component; in a dry run, the change that would be made.
type Action string

const (
	ActionReplaced   Action = "replaced"
	ActionCreated    Action = "created"
	ActionRestarted  Action = "restarted" // the same binary: forced, another command line, or a process older than the file
	ActionStarted    Action = "started"   // the same binary, whose service was stopped
	ActionUnchanged  Action = "unchanged"
	ActionSkipped    Action = "skipped"
	ActionFailed     Action = "failed"
	ActionRolledBack Action = "rolledBack"
)

// Report is the output of `swdt push` and `swdt rollback`.
type Report struct {
	Nodes   []NodeResult `json:"nodes"`
	Summary Summary      `json:"summary"`
}

// Summary counts the nodes. A node that was rolled back counts as failed.
type Summary struct {
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Failed    int `json:"failed"`
}

// NodeResult is the result of a push to one node.
type NodeResult struct {
	Name       string             `json:"name"`
	Result     Result             `json:"result"`
	Error      string             `json:"error"` // why the push failed
	DryRun     bool               `json:"dryRun"`
	Components []*ComponentResult `json:"components"`
	// ReadySeconds is the time from the moment when all services were healthy until the cluster
	// reported the node as Ready; 0 if swdt did not wait for Ready.
	ReadySeconds float64 `json:"readySeconds"`
	// Parts are the parts of the work, in the order in which they began.
	Parts []Part `json:"parts"`
	// Transaction is the ID of the push's own transaction on the node; "": there was none.
	Transaction string `json:"-"`
	// Recovered are transactions of earlier, interrupted pushes whose outcome this
	// push reports.
	Recovered []Recovered `json:"recovered"`
}

// ComponentResult is the result of a push for one binary, as users read it: JSON, with both
// versions, times and the transfer. ComponentStatus is another type, since `swdt status` has
// no before and after.
type ComponentResult struct {
	Name           string           `json:"name"`
	Action         Action           `json:"action"`
	Destination    string           `json:"destination"`
	SHA256         string           `json:"sha256"`
	PreviousSHA256 string           `json:"previousSha256"`
	Version        Version          `json:"version"`
	Service        *Service         `json:"service"` // null: the component has no service
	Transfer       *transfer.Result `json:"transfer"`
	Seconds        Seconds          `json:"seconds"`
	Message        string           `json:"message"`
	LogLines       []string         `json:"logLines"`

	cause bool // Message is the reason why the node failed
}

// Version has the version in the node file, and the versions that the old and the new binary
// report.
type Version struct {
	Wanted string `json:"wanted"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Service is the state of a Windows service.
type Service struct {
	Name    string     `json:"name"`
	State   string     `json:"state"`
	PID     uint32     `json:"pid"`
	Started *time.Time `json:"started"` // null: the service is not running
}

// Seconds are the durations of the parts of a push that the user waits for.
type Seconds struct {
	Obtain   float64 `json:"obtain"`
	Transfer float64 `json:"transfer"`
	Down     float64 `json:"down"`
	Healthy  float64 `json:"healthy"`
}

// Recovered reports an earlier transaction.
type Recovered struct {
	ID      string    `json:"id"`
	Holder  string    `json:"holder"`
	Begun   time.Time `json:"begun"`
	State   string    `json:"state"`  // the state of an unfinished transaction; else ""
	Result  string    `json:"result"` // committed, rolledBack or failed; "" if the transaction is unfinished
	Message string    `json:"message"`
}

// newNodeResult returns the result of a node about which nothing is known yet.
func newNodeResult(name string) NodeResult {
	return NodeResult{Name: name, Result: Unchanged, Components: []*ComponentResult{}, Parts: []Part{}, Recovered: []Recovered{}}
}

// And returns the result of two works on the same node, one after the other.
func (n NodeResult) And(next NodeResult) NodeResult {
	if n.Name == "" {
		return next
	}
	if next.Result != Unchanged {
		n.Result = next.Result
	}
	n.Error = cmp.Or(next.Error, n.Error)
	n.Components, n.Parts = append(n.Components, next.Components...), append(n.Parts, next.Parts...)
	n.Recovered = append(n.Recovered, next.Recovered...)
	return n
}

// NewReport joins the results of many nodes. A node that was never reached gets a
// result with the error.
func NewReport(results []fleet.Result[NodeResult]) Report {
	report := Report{Nodes: make([]NodeResult, len(results))}
	for i, r := range results {
		n := r.Value
		if n.Name == "" {
			n = newNodeResult(r.Name())
		}
		if r.Err != nil && n.Result != RolledBack {
			n.Result = Failed
		}
		if r.Err != nil && n.Error == "" {
			n.Error = r.Err.Error()
		}
		report.Nodes[i] = n
		switch n.Result {
		case Changed:
			report.Summary.Changed++
		case Unchanged:
			report.Summary.Unchanged++
		default:
			report.Summary.Failed++
		}
	}
	return report
}

func serviceOf(status *agentv1.ServiceStatus) *Service {
	if status == nil {
		return nil
	}
	return &Service{Name: status.GetName(), State: word.Of(status.GetState()), PID: status.GetPid(),
		Started: timeOf(status.GetStarted())}
}

// timeOf returns a time of the node's clock; nil: unknown.
func timeOf(t *timestamppb.Timestamp) *time.Time {
	if !t.IsValid() || t.AsTime().Unix() <= 0 {
		return nil
	}
	known := t.AsTime()
	return &known
}

func recoveredFrom(t *agentv1.Transaction, outcome *agentv1.SwapOutcome) Recovered {
	r := Recovered{ID: t.GetId(), Holder: t.GetHolder(), Begun: t.GetBegun().AsTime()}
	if outcome == nil {
		r.State = word.Of(t.GetState())
		return r
	}
	r.Result, r.Message = word.Of(outcome.GetResult()), outcome.GetMessage()
	return r
}
