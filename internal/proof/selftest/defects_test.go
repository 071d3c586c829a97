package selftest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/proof/selftest"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// altered returns a Tamper that changes each reply of one type.
func altered[T proto.Message](change func(number int, reply T)) nodetest.Tamper {
	return func(_ string, number int, reply proto.Message, send func(proto.Message) error) error {
		if r, ok := reply.(T); ok {
			change(number, r)
		}
		return send(reply)
	}
}

// defect is something that is wrong with a node.
type defect struct {
	name   string
	claim  string // that must fail
	reason string // part of the failure
	tamper nodetest.Tamper
	plant  func(b *bench)
}

func defects() []defect {
	calls := 0
	return []defect{
		{name: "a boot id that changes", claim: "facts", reason: "the boot id of the second answer",
			tamper: altered(func(_ int, r *agentv1.FactsReply) {
				if calls++; calls%2 == 0 {
					r.BootId += "1"
				}
			})},
		{name: "a program that prints another name", claim: "account", reason: "but the facts have",
			plant: func(b *bench) {
				b.Machine.Script(func(c platform.Command) (simulated.Answer, bool) {
					return simulated.Answer{Stdout: "OTHER\r\n"}, strings.Contains(c.Path, "hostname")
				})
			}},
		{name: "a missing access list", claim: "agent", reason: "lets more than SYSTEM and Administrators in",
			tamper: altered(func(_ int, r *agentv1.GetACLReply) { r.Sddl = "O:SYD:(A;OICI;FA;;;BU)" })},
		{name: "a wrong hash", claim: "files", reason: "the SHA-256 of the written file is",
			tamper: altered(func(_ int, r *agentv1.HashReply) { r.Sha256 = strings.Repeat("0", 64) })},
		{name: "a file changed in transit", claim: "files", reason: "has other bytes than the file that was sent",
			tamper: altered(func(_ int, r *agentv1.ReadReply) {
				if len(r.GetData()) > 0 {
					r.Data[0] ^= 1
				}
			})},
		{name: "a wrong exit code", claim: "programs", reason: "the exit code is 0, not 42",
			tamper: altered(func(_ int, r *agentv1.RunReply) { r.ExitCode = 0 })},
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
		{name: "an event log that lies about the time", claim: "events", reason: "was logged in the future",
			plant: func(b *bench) {
				b.Machine.LogEvent(simulated.LoggedEvent{Channel: "System", Provider: "EventLog", ID: 6005, Level: 4,
					Time: time.Now().Add(48 * time.Hour)})
			}},
		{name: "an event log that loses events", claim: "service-event", reason: "no new event 7045",
			plant: func(b *bench) {
				b.Machine.Script(func(c platform.Command) (simulated.Answer, bool) {
					return simulated.Answer{}, strings.Contains(c.Path, "wevtutil") && c.Args[0] == "qe"
				})
			}},
		{name: "a service that never stops", claim: "service", reason: "stop the service: ",
			plant: func(b *bench) { b.Machine.Register(restless()) }},
		{name: "a difference applied wrongly", claim: "delta", reason: "the method of sending is whole, not delta",
			tamper: altered(func(_ int, r *agentv1.PatchReply) { r.Sha256 = strings.Repeat("0", 64) })},
		{name: "a rollback that changes nothing", claim: "rollback", reason: "the SHA-256 of the service's program is",
			tamper: oldHashes()},
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

// restless is a throw-away program that ignores the request to stop.
func restless() simulated.Program {
	return simulated.Program{
		Name:  "restless",
		Match: func(image *simulated.Image) bool { return image.Throwaway != nil },
		Main: func(ctx context.Context, p *simulated.Process) int {
			if p.Service == nil {
				return 0
			}
			p.Service.Running()
			<-ctx.Done()
			return 1
		},
	}
}

func TestPlantedDefectsAreFound(t *testing.T) {
	t.Parallel()
	for _, d := range defects() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.options.Only = []string{d.claim}
			if d.plant != nil {
				d.plant(b)
			}
			if d.tamper != nil {
				b.Tamper(d.tamper)
			}
			report, _ := b.run(t)
			got := failures(report, selftest.Failed)
			if len(got) != 1 || !strings.Contains(got[d.claim], d.reason) {
				t.Errorf("the failures are %q, not that of %s with %q", got, d.claim, d.reason)
			}
			if _, err := b.Machine.ReadFile(layout.Root + `\selftest\swdt-selftest.exe`); err == nil {
				t.Error("the run left its program")
			}
		})
	}
}

// TestMissingProgramIsNoFailure removes pktmon, which a node under Wine does not have either.
func TestMissingProgramIsNoFailure(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Only = []string{"facts", "counters"}
	if err := b.Files.Remove(`C:\Windows\System32\pktmon.exe`); err != nil {
		t.Fatal(err)
	}
	report, err := b.run(t)
	if got := failures(report, selftest.Impossible); err != nil || got["counters"] != "the node has no pktmon" {
		t.Errorf("%v: not possible are %v, failed are %v", err, got, failures(report, selftest.Failed))
	}
}
