package selftest_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// readDefects are those that claims find which change nothing.
func readDefects() []defect {
	calls := 0
	return []defect{
		{name: "a boot id that changes", claim: "facts", reason: "the boot id of the second answer",
			tamper: altered(func(_ int, r *agentv1.FactsReply) {
				if calls++; calls%2 == 0 {
					r.BootId += "1"
				}
			})},
		{name: "a program that prints another name", claim: "account", reason: "another name than the facts have",
			plant: prints("hostname", "OTHER\r\n")},
		{name: "a missing access list", claim: "agent", reason: "lets more than SYSTEM and Administrators in",
			tamper: altered(func(_ int, r *agentv1.GetACLReply) { r.Sddl = "O:SYD:(A;OICI;FA;;;BU)" })},
		{name: "a shell that is not there", claim: "shell", reason: "the default shell of OpenSSH does not exist",
			tamper: altered(func(_ int, r *agentv1.RegistryValue) { r.String_ = `C:\gone.exe` })},
		{name: "services without processes", claim: "services", reason: "runs without a process",
			tamper: altered(func(_ int, r *agentv1.ListServicesReply) {
				for _, s := range r.GetServices() {
					s.Pid = 0
				}
			})},
		{name: "an event log that lies about the time", claim: "events", reason: "was logged in the future",
			plant: func(b *bench) {
				b.Machine.LogEvent(simulated.LoggedEvent{Channel: "System", Provider: "EventLog", ID: 6005, Level: 4,
					Time: time.Now().Add(48 * time.Hour)})
			}},
		{name: "a port that no port can be", claim: "listeners", reason: "port",
			tamper: altered(func(_ int, r *agentv1.ListenersReply) {
				r.Listeners = append(r.Listeners, &agentv1.Listener{Address: "0.0.0.0:70000", Port: 70000})
			})},
		{name: "an endpoint of no network", claim: "hns", reason: "which is not listed",
			tamper: altered(func(_ int, r *agentv1.ComputeReply) {
				for _, object := range r.GetObjects() {
					object.Document = bytes.Replace(object.GetDocument(), []byte(`"HostComputeNetwork":"`),
						[]byte(`"HostComputeNetwork":"0`), 1)
				}
			})},
		{name: "a system without its name", claim: "hcs", reason: "has no ID",
			tamper: altered(func(_ int, r *agentv1.ComputeReply) {
				for _, object := range r.GetObjects() {
					object.Id = ""
					object.Document = bytes.Replace(object.GetDocument(), []byte(`"Id"`), []byte(`"Other"`), 1)
				}
			})},
		{name: "counters that are no JSON", claim: "counters", reason: "are not JSON",
			plant: prints("pktmon.exe counters", "no counters\r\n")},
		{name: "a feature that is not reported", claim: "features", reason: "1 elements, and 2 were requested",
			tamper: altered(func(_ int, r *agentv1.FeaturesReply) { r.Features = r.GetFeatures()[:1] })},
		{name: "a runtime without a name", claim: "runtime", reason: "the runtime reports the name",
			tamper: altered(func(_ int, r *agentv1.CRIVersionReply) { r.RuntimeName = "" })},
	}
}

// prints makes programs of Windows whose command line has this text print something else.
func prints(program, text string) func(b *bench) {
	return func(b *bench) {
		b.Machine.Script(func(c platform.Command) (simulated.Answer, bool) {
			return simulated.Answer{Stdout: text}, strings.Contains(c.Path+" "+strings.Join(c.Args, " "), program)
		})
	}
}

// makeDefects are those that claims find which make files, processes and settings.
func makeDefects() []defect {
	var sleeper *agentv1.Process
	return []defect{
		{name: "a wrong hash", claim: "files", reason: "the SHA-256 of the written file is", tamper: wrongHashes()},
		{name: "a file changed in transit", claim: "files", reason: "has other bytes than the file that was sent",
			tamper: altered(func(_ int, r *agentv1.ReadReply) {
				if len(r.GetData()) > 0 {
					r.Data[0] ^= 1
				}
			})},
		{name: "a wrong hash of a file with a long name", claim: "names", reason: "the SHA-256 of the written file is",
			tamper: wrongHashes()},
		{name: "a continued file with other bytes", claim: "resume", reason: "the SHA-256 of the continued file is",
			tamper: altered(func(_ int, r *agentv1.WriteReply) { r.Sha256 = strings.Repeat("0", 64) })},
		{name: "a wrong exit code", claim: "programs", reason: "the exit code is 0, not 42",
			tamper: altered(func(_ int, r *agentv1.RunReply) { r.ExitCode = 0 })},
		{name: "a process that stays in the list", claim: "processes", reason: "lists a program that has ended",
			tamper: altered(func(_ int, r *agentv1.ListProcessesReply) {
				for _, p := range r.GetProcesses() {
					if strings.Contains(p.GetCommandLine(), "sleeper") {
						sleeper = p
					}
				}
				r.Processes = append(r.Processes, sleeper)
			})},
		{name: "a list without the parent", claim: "processes", reason: "but not its parent",
			tamper: altered(func(_ int, r *agentv1.ListProcessesReply) {
				r.Processes = slices.DeleteFunc(r.GetProcesses(), func(p *agentv1.Process) bool {
					return strings.HasPrefix(p.GetName(), session)
				})
			})},
		{name: "a parent that is another program", claim: "processes", reason: "not that of swdt's agent",
			tamper: altered(func(_ int, r *agentv1.ListProcessesReply) {
				for _, p := range r.GetProcesses() {
					p.ParentPid = p.GetPid()
				}
			})},
		{name: "a running program that cannot be renamed", claim: "running", reason: "rename a program that runs: ",
			plant: refused(simulated.OpRename, `moved.exe`)},
		{name: "a held file that can be renamed", claim: "held", reason: "the rename of a file that a program holds",
			plant: func(b *bench) {
				// A file system that does not enforce the sharing of files.
				b.Machine.Interleave(func(op simulated.Operation) {
					if op.Kind == simulated.OpRename && strings.HasSuffix(op.Target, `held.txt.moved`) {
						b.Machine.Kill("swdt-selftest.exe")
					}
				})
			}},
		{name: "an agent that survives its end", claim: "lost", reason: "the agent still answers",
			plant: refused(simulated.OpProcessKill, session)},
		{name: "a registry that shortens numbers", claim: "registry", reason: "the registry value number",
			tamper: altered(func(_ int, r *agentv1.RegistryValue) { r.Integer &= 0xffff })},
		{name: "a change that is no change", claim: "environment", reason: "for time 2 is true, not false",
			tamper: altered(func(_ int, r *agentv1.SetEnvironmentReply) { r.Changed = true })},
		{name: "a disabled rule that is enabled", claim: "firewall", reason: "the added firewall rule is listed as",
			tamper: altered(func(_ int, r *agentv1.ListFirewallRulesReply) {
				for _, rule := range r.GetRules() {
					rule.Enabled = true
				}
			})},
		{name: "a setting that does not change", claim: "desktop", reason: "the changed setting is",
			tamper: altered(func(_ int, r *agentv1.RegistryValue) { r.Integer = 1 })},
	}
}

func wrongHashes() nodetest.Tamper {
	return altered(func(_ int, r *agentv1.HashReply) { r.Sha256 = strings.Repeat("0", 64) })
}

// refused makes operations on a target fail.
func refused(kind simulated.Kind, target string) func(b *bench) {
	return func(b *bench) {
		b.defect(func(op simulated.Operation) simulated.Verdict {
			if op.Kind == kind && op.Phase == simulated.Before && strings.Contains(op.Target, target) {
				return simulated.Fail(fault.ErrPermission)
			}
			return simulated.Continue()
		})
	}
}

// programDefects are those that claims find which work on the throw-away service.
func programDefects() []defect {
	return []defect{
		{name: "a service that never stops", claim: "service", reason: "stop the service: ",
			plant: runs(func(ctx context.Context, _ *simulated.Process) { <-ctx.Done() })},
		{name: "a process that cannot be killed", claim: "kill", reason: "permission denied",
			plant: refused(simulated.OpProcessKill, "swdt-selftest")},
		{name: "a log that loses its last lines", claim: "service-log", reason: "do not show its start and its stop",
			tamper: altered(func(_ int, r *agentv1.ReadReply) {
				r.Data = bytes.ReplaceAll(r.GetData(), []byte("stopped v"), []byte("other v"))
			})},
		{name: "an event log that loses events", claim: "service-event", reason: "no new event 7045",
			plant: func(b *bench) {
				b.Machine.Script(func(c platform.Command) (simulated.Answer, bool) {
					return simulated.Answer{}, strings.Contains(c.Path, "wevtutil") && c.Args[0] == "qe"
				})
			}},
		{name: "a push that changes nothing", claim: "push", reason: "the SHA-256 of the service's program is",
			tamper: oldHashes()},
		{name: "a difference applied wrongly", claim: "delta", reason: "the method of sending is whole, not delta",
			tamper: altered(func(_ int, r *agentv1.PatchReply) { r.Sha256 = strings.Repeat("0", 64) })},
		{name: "a rollback that changes nothing", claim: "rollback", reason: "the SHA-256 of the service's program is",
			tamper: oldHashes()},
		{name: "a broken program that stays", claim: "broken", reason: "was not rolled back",
			plant: runs(func(ctx context.Context, p *simulated.Process) {
				select {
				case <-ctx.Done():
				case <-p.Service.StopRequested():
					p.Service.Stopped(0, 0)
				}
			})},
		{name: "a cut push that changes nothing", claim: "cut", reason: "the SHA-256 of the service's program is",
			tamper: oldHashes()},
		{name: "a restart that is refused", claim: "guardian", reason: "restart the node: ",
			plant: refused(simulated.OpReboot, "")},
	}
}

// runs replaces the throw-away program by another one, which as a service runs until main returns.
func runs(main func(ctx context.Context, p *simulated.Process)) func(b *bench) {
	return func(b *bench) {
		b.Machine.Register(simulated.Program{
			Name:  "another program",
			Match: func(image *simulated.Image) bool { return image.Throwaway != nil },
			Main: func(ctx context.Context, p *simulated.Process) int {
				if p.Service == nil {
					return 0
				}
				p.Service.Running()
				main(ctx, p)
				return 0
			},
		})
	}
}

// oldHashes returns a Tamper that answers each question for the hash of the throw-away program with the
// first answer.
func oldHashes() nodetest.Tamper {
	first := ""
	return altered(func(_ int, r *agentv1.HashReply) {
		if first == "" {
			first = r.GetSha256()
		}
		r.Sha256 = first
	})
}
