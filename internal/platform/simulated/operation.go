package simulated

import (
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Kind is the action of an operation.
type Kind string

const (
	OpCreate   Kind = "create" // Files.Create and Files.NewFile
	OpWrite    Kind = "write"
	OpSync     Kind = "sync"
	OpRename   Kind = "rename" // Target is the new path, and From is the old path
	OpRemove   Kind = "remove"
	OpFolder   Kind = "makeFolder"
	OpModified Kind = "setModified"
	OpACL      Kind = "setACL"
	OpLock     Kind = "lock"
	OpUnlock   Kind = "unlock"

	OpServiceCreate    Kind = "service.create"
	OpServiceConfigure Kind = "service.configure"
	OpServiceDelete    Kind = "service.delete"
	OpServiceFlush     Kind = "service.flush"
	OpServiceStart     Kind = "service.start"
	OpServiceStop      Kind = "service.stop"

	OpRegistrySet       Kind = "registry.set"
	OpRegistryDelete    Kind = "registry.delete"
	OpRegistryDeleteKey Kind = "registry.deleteKey"

	OpProcessRun  Kind = "process.run"
	OpProcessKill Kind = "process.kill"

	OpFeatureEnable  Kind = "feature.enable"
	OpFeatureDisable Kind = "feature.disable"

	OpTerminate Kind = "system.terminate"
	OpHNSRemove Kind = "hns.remove"

	OpFirewallAdd    Kind = "firewall.add"
	OpFirewallRemove Kind = "firewall.remove"
	OpFirewallGroup  Kind = "firewall.group"

	OpReboot    Kind = "reboot"
	OpBroadcast Kind = "broadcast"

	// Operations of these kinds change nothing: their Seq is 0, and Operations leaves them out. The
	// hook receives them so that a test can make a health check fail.
	OpHTTPGet   Kind = "http.get"
	OpPipeDial  Kind = "pipe.dial"
	OpConnect   Kind = "connect"
	OpReach     Kind = "reach"
	OpResolve   Kind = "resolve"
	OpListeners Kind = "listeners"

	// Operations that only read the disk are passed only to Interleave.
	opStat    Kind = "stat"
	opList    Kind = "list"
	opOpen    Kind = "open"
	opReadACL Kind = "readACL"
)

func (k Kind) changes() bool {
	switch k {
	case OpHTTPGet, OpPipeDial, OpConnect, OpReach, OpResolve, OpListeners:
		return false
	}
	return true
}

// Phase is the time of a call of the hook: before or after an operation.
type Phase string

const (
	Before Phase = "before" // the operation has had no effect yet
	After  Phase = "after"  // the operation has succeeded or failed; its caller has not received the result yet
)

// Operation is one change or query that a process requests of the machine.
type Operation struct {
	Seq     int // 1, 2, … since New or ForgetOperations; 0 if the operation changes nothing
	Phase   Phase
	Process string // name of the requesting process
	PID     uint32
	Service string // the service of the process, if any
	Kind    Kind
	Target  string // path, service, key…
	From    string // the old path of a rename
	// Occurrence counts the operations of this Process and Service with this Kind and Target.
	// Process, Service, Kind, Target and Occurrence together identify an operation even if several
	// processes take turns.
	Occurrence int
	Err        error // in phase After: the error that the operation returned
}

func (o Operation) String() string {
	return fmt.Sprintf("%s %s %s (%d, #%d)", o.Process, o.Kind, o.Target, o.Seq, o.Occurrence)
}

// Verdict is the hook's decision. The zero Verdict leaves the operation unchanged. The parts can be
// combined.
type Verdict struct {
	// Err is the error that the caller gets. In phase Before, Err prevents the effect of the
	// operation; in phase After, the operation has already had its effect.
	Err error
	// Partial applies to a write for which Err is set in phase Before: half of the bytes are
	// written.
	Partial bool
	// KillCaller ends the requesting process. Kill names processes and services; all processes of
	// these names end.
	KillCaller bool
	Kill       []string
	// PowerCut resets the machine at once: bytes that were not synced are lost.
	PowerCut bool
	// Restart begins an orderly restart. The requesting process goes on until the restart ends it.
	Restart bool
}

// Continue returns a verdict that leaves the operation unchanged.
func Continue() Verdict { return Verdict{} }

// Fail returns a verdict that makes the operation fail.
func Fail(err error) Verdict { return Verdict{Err: err} }

// DiskFull returns a verdict that makes a write end half-way, and any other operation fail, with
// ErrDiskFull.
func DiskFull() Verdict { return Verdict{Err: fault.ErrDiskFull, Partial: true} }

// KillCaller returns a verdict that ends the requesting process.
func KillCaller() Verdict { return Verdict{KillCaller: true} }

// KillNamed returns a verdict that ends all processes and services of these names.
func KillNamed(names ...string) Verdict { return Verdict{Kill: names} }

// PowerCut returns a verdict that resets the machine.
func PowerCut() Verdict { return Verdict{PowerCut: true} }

// Restart returns a verdict that restarts the machine.
func Restart() Verdict { return Verdict{Restart: true} }

// OnOperation sets the hook that is called before and after every operation;
// nil removes it. The hook runs in the caller's goroutine and may use the
// machine.
func (m *Machine) OnOperation(hook func(Operation) Verdict) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = hook
}

// Interleave sets a function that is called before every operation of processes of SYSTEM and the
// administrators, including operations that only read files. The function `act` does what another
// user's process might do at that moment. It may use processes that SpawnAs made, since their
// operations do not call it. If act is nil, Interleave removes the earlier function.
func (m *Machine) Interleave(act func(Operation)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.intruder = act
}

func (p *process) interleave(op Operation) {
	p.m.mu.Lock()
	act := p.m.intruder
	p.m.mu.Unlock()
	if act != nil && p.account.privileged {
		op.Process, op.PID, op.Service = p.name, p.pid, p.serviceName()
		act(op)
	}
}

// Operations returns the changes that processes have requested so far, in
// order.
func (m *Machine) Operations() []Operation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.operations)
}

// ForgetOperations clears the record and restarts the count.
func (m *Machine) ForgetOperations() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.operations, m.seq, m.seen = nil, 0, map[string]int{}
}

// do performs an operation for p. It calls the hook, then the function effect with the lock held,
// and then the hook once more.
func (p *process) do(kind Kind, target string, effect func() error) error {
	return p.operate(Operation{Kind: kind, Target: target}, func(Verdict) error {
		p.m.mu.Lock()
		defer p.m.mu.Unlock()
		if p.gone {
			return ErrKilled
		}
		return effect()
	})
}

// operate is like do, for an effect that acquires the lock itself. The effect is also
// called for a failing write: Verdict.Err and Verdict.Partial are then set.
func (p *process) operate(op Operation, effect func(Verdict) error) error {
	m := p.m
	if err := p.check(); err != nil {
		return err
	}
	op = m.record(p, op)
	p.interleave(op)
	verdict := m.ask(op)
	if m.carryOut(p, verdict); p.check() != nil {
		return ErrKilled
	}
	if verdict.Err != nil && !(verdict.Partial && op.Kind == OpWrite) {
		return fmt.Errorf("%s %s: %w", op.Kind, op.Target, verdict.Err)
	}
	op.Err = effect(verdict)
	op.Phase = After
	verdict = m.ask(op)
	if m.carryOut(p, verdict); p.check() != nil {
		return ErrKilled
	}
	if op.Err == nil && verdict.Err != nil {
		return fmt.Errorf("%s %s: %w", op.Kind, op.Target, verdict.Err)
	}
	return op.Err
}

func (m *Machine) record(p *process, op Operation) Operation {
	m.mu.Lock()
	defer m.mu.Unlock()
	op.Phase, op.Process, op.PID, op.Service = Before, p.name, p.pid, p.serviceName()
	key := p.name + "\x00" + op.Service + "\x00" + string(op.Kind) + "\x00" + op.Target
	m.seen[key]++
	op.Occurrence = m.seen[key]
	if op.Kind.changes() {
		m.seq++
		op.Seq = m.seq
		m.operations = keepLast(append(m.operations, op))
	}
	return op
}

func (m *Machine) ask(op Operation) Verdict {
	m.mu.Lock()
	hook := m.hook
	m.mu.Unlock()
	if hook == nil {
		return Verdict{}
	}
	return hook(op)
}

func (m *Machine) carryOut(p *process, v Verdict) {
	if v.PowerCut {
		m.PowerCut()
	}
	if v.Restart {
		m.spawn(m.Reboot)
	}
	for _, name := range v.Kill {
		m.Kill(name)
	}
	if v.KillCaller {
		p.kill(exitKilled)
	}
}
