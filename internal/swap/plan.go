package swap

import (
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// Machine is the node as a transaction sees it.
type Machine struct {
	Host *host.Host
	// Executable is the agent's own path on the node: what the guardian runs.
	Executable string
	// Hashes are what the session knows of the node's files already; nil: what
	// the node has saved of them.
	Hashes *hashcache.Cache
}

func (m Machine) hashes() *hashcache.Cache {
	if m.Hashes != nil {
		return m.Hashes
	}
	return hashcache.Load(m.Host.Files)
}

// Plan is what a transaction is to do.
type Plan struct {
	Holder     string      `json:"holder"` // who asked for it
	Components []Component `json:"components"`
}

// Component is one binary and the service that runs it.
type Component struct {
	Name        string `json:"name"`
	Destination string `json:"destination"`
	// Staged is the file to put there, beside the destination. Empty: restart
	// the service with the binary as it is.
	Staged string `json:"staged,omitempty"`
	// SHA256 of the staged file, PreviousSHA256 of what must stand at the
	// destination when the transaction begins (empty: nothing).
	SHA256         string `json:"sha256,omitempty"`
	PreviousSHA256 string `json:"previousSha256,omitempty"`
	// Service is the Windows service to restart; empty: none.
	Service string `json:"service,omitempty"`
	// DependsOn are services that must run before this one, beside those that
	// the SCM knows.
	DependsOn []string `json:"dependsOn,omitempty"`
	// CommandLine is the service's new command line; empty: as it is.
	CommandLine string `json:"commandLine,omitempty"`
	Health      Health `json:"health"`
	// Settle is how long the service must run with one process.
	Settle       time.Duration `json:"settle"`
	StopTimeout  time.Duration `json:"stopTimeout"`
	StartTimeout time.Duration `json:"startTimeout"`
}

// Health is how a component's service shows that it works, beyond running.
type Health struct {
	HTTPGet string        `json:"httpGet,omitempty"` // must answer 2xx
	CRIPipe string        `json:"criPipe,omitempty"` // must answer CRI Version
	Timeout time.Duration `json:"timeout"`
}

func (h Health) empty() bool { return h.HTTPGet == "" && h.CRIPipe == "" }

// Defaults of a component's waits.
const (
	DefaultSettle        = time.Second
	DefaultStopTimeout   = 30 * time.Second
	DefaultStartTimeout  = 30 * time.Second
	DefaultHealthTimeout = time.Minute
)

func (p *Plan) setDefaults() {
	for i := range p.Components {
		c := &p.Components[i]
		orDefault(&c.Settle, DefaultSettle)
		orDefault(&c.StopTimeout, DefaultStopTimeout)
		orDefault(&c.StartTimeout, DefaultStartTimeout)
		orDefault(&c.Health.Timeout, DefaultHealthTimeout)
	}
}

func orDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

func (c Component) undo() string     { return layout.Undo(c.Destination) }
func (c Component) previous() string { return layout.Previous(c.Destination) }
func (c Component) swaps() bool      { return c.Staged != "" }
func (c Component) creates() bool    { return c.swaps() && c.PreviousSHA256 == "" }

// revives is whether the component goes back to its kept previous binary: the
// staged file is then not ours to delete.
func (c Component) revives() bool { return samePath(c.Staged, c.previous()) }

// State is how far a transaction has come.
type State string

const (
	Prepared    State = "prepared"    // written down, nothing touched yet
	Stopping    State = "stopping"    // a service
	Swapping    State = "swapping"    // a component's files
	Swapped     State = "swapped"     // all files: from here on it is finished, not undone
	Starting    State = "starting"    // a service
	Checking    State = "checking"    // a service: settling, healthy
	Committing  State = "committing"  // clearing away what an undo would need
	RollingBack State = "rollingBack" // and why
	Resumed     State = "resumed"     // a new guardian took over
	GaveUp      State = "gaveUp"      // the undo itself failed; the next guardian tries again
	Done        State = "done"        // the outcome is known
)

// Result is how a transaction ended.
type Result string

const (
	Committed  Result = "committed"
	RolledBack Result = "rolledBack"
	// Failed is a rollback after which something that ran does not run.
	Failed Result = "failed"
)

// Event is one thing that happened, as it is reported while it happens.
type Event struct {
	Time      time.Time
	State     State
	Component string // or the service
	Message   string
}

// Outcome is how a transaction ended, and what became of each component.
type Outcome struct {
	Result          Result             `json:"result"`
	Message         string             `json:"message,omitempty"`
	FailedComponent string             `json:"failedComponent,omitempty"`
	Components      []ComponentOutcome `json:"components"`
	// Down is from the first stop to the last start.
	Down time.Duration `json:"down"`
}

// ComponentOutcome is what became of one component.
type ComponentOutcome struct {
	Name    string              `json:"name"`
	Action  string              `json:"action"` // replaced, created, restarted, rolledBack, failed
	Message string              `json:"message,omitempty"`
	Service *host.ServiceStatus `json:"service,omitempty"`
	Down    time.Duration       `json:"down,omitempty"`    // its service's stop to its start
	Healthy time.Duration       `json:"healthy,omitempty"` // from its start to healthy
	// LogLines are the service's last log lines where it failed.
	LogLines []string `json:"logLines,omitempty"`
}

// ErrBusy is returned by Begin while another transaction is unfinished.
var ErrBusy = errors.New("another transaction on this node is unfinished")

// ErrChanged is returned by Begin when the destination is not what the plan was
// made for.
var ErrChanged = errors.New("the file at the destination has changed since it was looked at")

// ErrNoTransaction is returned where none has the wanted ID.
var ErrNoTransaction = errors.New("no such transaction")

// StuckError says that a transaction could neither be finished nor undone yet.
type StuckError struct {
	ID   string
	Last Event
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("transaction %s is not finished (%s: %s); it is tried again at the next contact and at the next boot",
		e.ID, e.Last.State, e.Last.Message)
}
