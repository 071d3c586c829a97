// Package layout names the files that swdt keeps on a node.
package layout

import "strings"

const (
	// Root holds everything; only Administrators and SYSTEM may write there.
	Root = `C:\ProgramData\swdt`

	// RootSDDL is the owner and protected access list of the folders that `swdt join`
	// makes for Kubernetes. Root has one of its own: see package custody.
	RootSDDL = "O:BAD:PAI(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)"
	// Agents has one folder for each agent, named by its hash.
	Agents = Root + `\agent`
	// AgentName is the executable in each agent's folder.
	AgentName = "swdt-agent.exe"
	// LockFile is held by the one swdt that may change the node.
	LockFile = Root + `\lock`
	// Journals has the journal of the transaction in flight, and of those whose
	// outcome nobody has been told yet.
	Journals = Root + `\journal`
	// HashCache remembers the SHA-256 of files by size, time and file id.
	HashCache = Root + `\hashes.json`
	// JoinRecord is what `swdt join` put on the machine, for `swdt reset` and for
	// the next run to go on from.
	JoinRecord = Root + `\join.json`
	// JoinConfiguration has a bootstrap token in it while kubeadm runs.
	JoinConfiguration = Root + `\join.yaml`
	// Trace has what `swdt trace` changed, and what was there before.
	Trace = Root + `\trace`
	// TraceRecord is the list of it.
	TraceRecord = Trace + `\record.json`
	// GuardianService is the one-shot service that owns a transaction.
	GuardianService = "swdt-guardian"
	// Scratch has what programs of Windows' write for `swdt diag` to fetch.
	Scratch = Root + `\diag`
	// Captures has the packets of the latest capture, its lock and its journal.
	Captures       = Root + `\capture`
	CaptureLock    = Captures + `\lock`
	CaptureJournal = Captures + `\journal.json`
	// CaptureService is the one-shot service that owns a capture.
	CaptureService = "swdt-capture"
)

// BinarySDDL is the owner and access list of a binary that a service runs, if the
// one that it replaces has none to take over: every account may run it, and only
// administrators may change it.
const BinarySDDL = "O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;BU)"

// Agent is the path of the agent with this hash (64 hex digits, SHA-256).
func Agent(hash string) string { return Agents + `\` + hash + `\` + AgentName }

// Staged is where a new binary waits beside its destination.
func Staged(destination, hash string) string { return destination + ".swdt-" + hash[:12] }

// Previous is where the replaced binary is kept for a rollback.
func Previous(destination string) string { return destination + ".swdt-old" }

// Before is where somebody else's configuration file is kept while ours stands in
// its place.
func Before(path string) string { return path + ".swdt-before" }

// Undo is where the old binary is during a transaction.
func Undo(destination string) string { return destination + ".swdt-undo" }

// Aside is where a binary waits that is in the way of a transaction and still
// runs, so that Windows neither deletes nor replaces it. name is unique: the
// transaction's ID, and what the binary was to it.
func Aside(destination, name string) string { return destination + ".swdt-stale-" + name }

// IsLeftover reports whether a file beside destination is one that only a
// push leaves that was interrupted, or whose old binary still ran: a staged or
// half-sent binary, or one set aside.
func IsLeftover(destination, path string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(path), strings.ToLower(destination)+".swdt-")
	return ok && rest != "old" && rest != "undo" && rest != "before"
}
