package swap

import (
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Machine is the node on which a transaction runs.
type Machine struct {
	Platform *platform.Platform
	// Executable is the path of the agent on the node. The guardian runs this file.
	Executable string
	// Hashes are the hashes of the node's files that the session has already computed or
	// loaded; nil: load the hashes that are saved on the node.
	Hashes *hashcache.Cache
}

func (m Machine) hashes() *hashcache.Cache {
	if m.Hashes != nil {
		return m.Hashes
	}
	return hashcache.Load(m.Platform.Files)
}

// Plan describes a transaction.
type Plan struct {
	Holder     string      `json:"holder"` // the user, machine and command that requested the transaction
	Components []Component `json:"components"`
}

// Component is one binary and the service that runs it. The journal stores Plan, Component, Health,
// Outcome and ComponentOutcome as JSON, so an agent of another build must be able to read them.
// They have the same fields as the RPC messages, but are types of their own, since the RPC messages
// may change with each build.
type Component struct {
	Name        string `json:"name"`
	Destination string `json:"destination"`
	// Staged is the new file, beside the destination. Empty: restart the
	// service with the present binary.
	Staged string `json:"staged,omitempty"`
	// SHA256 is the hash of the staged file. PreviousSHA256 is the hash that the file at the
	// destination must have when the transaction begins; empty: there must be no file.
	SHA256         string `json:"sha256,omitempty"`
	PreviousSHA256 string `json:"previousSha256,omitempty"`
	// PreviousVersion is the version that the file at the destination has reported; empty: unknown. Only the history
	// has it.
	PreviousVersion string `json:"previousVersion,omitempty"`
	// Service is the Windows service to restart; empty: none.
	Service string `json:"service,omitempty"`
	// DependsOn are services that must run before this one, in addition to the dependencies
	// that are registered with the SCM.
	DependsOn []string `json:"dependsOn,omitempty"`
	// CommandLine is the service's new command line; empty: unchanged.
	CommandLine string `json:"commandLine,omitempty"`
	// AskVersion runs the new binary with --version, once it is in place.
	AskVersion bool   `json:"askVersion,omitempty"`
	Health     Health `json:"health"`
	// Settle is how long the service must run with the same process.
	Settle       time.Duration `json:"settle"`
	StopTimeout  time.Duration `json:"stopTimeout"`
	StartTimeout time.Duration `json:"startTimeout"`
}

// Health describes the checks by which a component's service proves that it not only runs but
// works.
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

// revives reports whether the staged file is the component's previous binary, which was kept for a
// rollback and is now used again. Such a staged file must not be deleted.
func (c Component) revives() bool { return samePath(c.Staged, c.previous()) }

// State is a stage of a transaction.
type State string

const (
	Prepared    State = "prepared"    // recorded, nothing changed yet
	Waiting     State = "waiting"     // another program holds a file; the record names both
	Stopping    State = "stopping"    // stopping a service
	Swapping    State = "swapping"    // swapping the files of a component
	Swapped     State = "swapped"     // all files are swapped; a new guardian now finishes instead of undoing
	Starting    State = "starting"    // starting a service
	Checking    State = "checking"    // checking that a service settles and is healthy
	Committing  State = "committing"  // keeping the old binaries for a rollback
	RollingBack State = "rollingBack" // undoing; the record has the reason
	Resumed     State = "resumed"     // a new guardian took over
	GaveUp      State = "gaveUp"      // the end could not be recorded; the next guardian tries again
	Done        State = "done"        // the outcome is known
)

// Result is the way in which a transaction ended, as the journal records it.
type Result string

const (
	Committed  Result = "committed"
	RolledBack Result = "rolledBack"
	// Failed is the result of a rollback if a service that ran before the transaction does not
	// run after it.
	Failed Result = "failed"
)

// Action is the change that a transaction made to a component, as the journal records it.
type Action string

const (
	ActionReplaced   Action = "replaced"
	ActionCreated    Action = "created"
	ActionRestarted  Action = "restarted"
	ActionRolledBack Action = "rolledBack"
	ActionFailed     Action = "failed"
)

// Event is one step, reported when it happens.
type Event struct {
	Time      time.Time
	State     State
	Component string // the name of a component or of a service
	Message   string
}

// Outcome describes the end of a transaction, for each component.
type Outcome struct {
	Result          Result             `json:"result"`
	Message         string             `json:"message,omitempty"`
	FailedComponent string             `json:"failedComponent,omitempty"`
	Components      []ComponentOutcome `json:"components"`
	// Down is the time from the first stop to the last start.
	Down time.Duration `json:"down"`
}

// ComponentOutcome is the outcome of one component.
type ComponentOutcome struct {
	Name    string                  `json:"name"`
	Action  Action                  `json:"action"`
	Message string                  `json:"message,omitempty"`
	Service *platform.ServiceStatus `json:"service,omitempty"`
	Down    time.Duration           `json:"down,omitempty"`    // from the stop of the component's service to its start
	Healthy time.Duration           `json:"healthy,omitempty"` // from the service's start until the component is healthy
	// LogLines are the service's last log lines if it failed.
	LogLines []string `json:"logLines,omitempty"`
	// Version is the version that the new binary reports, if it was asked and stays.
	Version string `json:"version,omitempty"`
}

// ErrBusy is returned by Begin while another transaction is unfinished, and by Acknowledge if the
// transaction itself is unfinished.
var ErrBusy = errors.New("another transaction on this node is unfinished")

// ErrChanged is returned by Begin when the destination has changed since the
// plan was made.
var ErrChanged = errors.New("the file at the destination has changed since it was inspected")

// ErrNoTransaction is returned if no transaction has the wanted ID.
var ErrNoTransaction = errors.New("no such transaction")

// StuckError reports that a transaction is neither finished nor undone, although guardians have
// tried again.
type StuckError struct {
	ID   string
	Last Event
	// Guarded is set if a guardian still tries.
	Guarded bool
}

func (e *StuckError) Error() string {
	next := "swdt tries again at the next contact and at the next boot"
	if e.Guarded {
		next = "the node keeps trying by itself"
	}
	return fmt.Sprintf("transaction %s is not finished (%s: %s); %s", e.ID, e.Last.State, e.Last.Message, next)
}
