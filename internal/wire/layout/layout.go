// Package layout names the files that swdt keeps on a node.
package layout

import (
	"fmt"
	"strings"
)

const (
	// Root is the folder that holds swdt's own files; only Administrators and SYSTEM may write
	// there. Staged, Previous, Before, Undo and Aside name the files that swdt keeps elsewhere.
	Root = `C:\ProgramData\swdt`

	// RootSDDL is the owner and protected access list of the folders that `swdt join` makes for
	// Kubernetes. The folder Root itself has another access list: see package custody.
	RootSDDL = "O:BAD:PAI(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)"
	// Agents contains one folder for each agent; the agent's hash is the folder's name.
	Agents = Root + `\agent`
	// AgentName is the executable in each agent's folder.
	AgentName = "swdt-agent.exe"
	// SelftestService is the service that `swdt selftest` makes, ends and removes, and
	// SelftestDisplayName is its display name, which Windows' events have.
	SelftestService, SelftestDisplayName = "swdt-selftest", "swdt selftest"
	// LockFile is the file that swdt locks while it may change the node, so that only one swdt
	// changes the node at a time.
	LockFile = Root + `\lock`
	// Journals holds the journal of the transaction in flight, and the journals of transactions whose outcome no swdt
	// has collected yet.
	Journals = Root + `\journal`
	// History has a row for each of the last transactions that ended, one JSON object a line, oldest first. HistoryLock
	// is locked while a row is added.
	History, HistoryLock = Root + `\history.jsonl`, Root + `\history.lock`
	// HashCache stores the SHA-256 of files by size, time and file id.
	HashCache = Root + `\hashes.json`
	// JoinRecord lists the things that `swdt join` put on the machine. `swdt reset` and the next
	// run of `swdt join` read this list.
	JoinRecord = Root + `\join.json`
	// SetupRecord lists what `swdt setup` has changed on the machine and `swdt reset` undoes.
	SetupRecord = Root + `\setup.json`
	// KubeletRecord has kubelet's configuration as kubeadm wrote it and kubelet's command line as swdt registered
	// it, by which an upgrade finds what a user has changed since.
	KubeletRecord = Root + `\kubelet.json`
	// KubeadmDryRun is the folder in which a dry run of kubeadm writes. swdt removes it when kubeadm has ended.
	KubeadmDryRun = Root + `\kubeadm`
	// RolloutRecord lists what the latest contents of a fleet have replaced on the node.
	RolloutRecord = Root + `\rollout.json`
	// JoinConfiguration is the configuration file of kubeadm join. It contains a bootstrap token, so swdt
	// removes the file when kubeadm has ended.
	JoinConfiguration = Root + `\join.yaml`
	// Trace holds the settings that `swdt trace` changed, and the state of these settings before
	// the change.
	Trace = Root + `\trace`
	// TraceRecord is the list of the settings that `swdt trace` changed.
	TraceRecord = Trace + `\record.json`
	// GuardianService is the one-shot service that owns a transaction; see ServiceNames.
	GuardianService = "swdt-guardian"
	// Scratch holds the output of Windows programs. `swdt diag` fetches this output.
	Scratch = Root + `\diag`
	// Captures holds the packets of the latest capture, its lock and its journal.
	Captures       = Root + `\capture`
	CaptureLock    = Captures + `\lock`
	CaptureJournal = Captures + `\journal.json`
	// CaptureService is the one-shot service that owns a capture.
	CaptureService = "swdt-capture"
)

// BinarySDDL is the owner and access list of a new binary that a service runs. It is used if the
// new binary replaces no file, or a file that ordinary accounts could change. Every account may run
// the binary, and only administrators may change it.
const BinarySDDL = "O:BAD:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;BU)"

// Agent returns the path of the agent with this hash (64 hex digits, SHA-256).
func Agent(hash string) string { return Agents + `\` + hash + `\` + AgentName }

// Debuggers is the folder of the debuggers that `swdt attach` brings.
const Debuggers = Root + `\debug`

// Dlv returns the path of a debugger, by its hash (64 hex digits, SHA-256).
func Dlv(hash string) string { return Debuggers + `\dlv-` + hash[:12] + ".exe" }

// Staged returns the path at which a new binary waits beside its destination.
func Staged(destination, hash string) string { return destination + ".swdt-" + hash[:12] }

// Previous returns the path at which the replaced binary is kept for a rollback.
func Previous(destination string) string { return destination + ".swdt-old" }

// Before returns the path at which swdt keeps the original configuration file while a file of swdt
// takes its place.
func Before(path string) string { return path + ".swdt-before" }

// Undo returns the path of the old binary during a transaction.
func Undo(destination string) string { return destination + ".swdt-undo" }

// Aside returns the path to which a transaction moves a binary whose path it needs. Usually, a
// program still runs that binary, so Windows neither deletes nor replaces it. The name must be
// unique: it consists of the transaction's ID and the role of the binary.
func Aside(destination, name string) string { return destination + ".swdt-stale-" + name }

// IsLeftover reports whether path is a leftover beside destination. A leftover is a staged or
// partially sent binary of an interrupted push, or a binary that was moved aside because a program
// still ran it.
func IsLeftover(destination, path string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(path), strings.ToLower(destination)+".swdt-")
	return ok && rest != "old" && rest != "undo" && rest != "before"
}

// mostServiceNames bounds the names of a guardian's service.
const mostServiceNames = 5

// ServiceNames returns the names that a guardian's service can have: Windows keeps a deleted service under its name as
// long as another program, such as services.msc, has a handle to it, and the next guardian takes the next name.
func ServiceNames(service string) []string {
	names := []string{service}
	for n := 2; n <= mostServiceNames; n++ {
		names = append(names, fmt.Sprintf("%s-%d", service, n))
	}
	return names
}
