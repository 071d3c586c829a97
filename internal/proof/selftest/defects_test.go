package selftest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

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

// defects are at least one for each claim.
func defects() []defect { return slices.Concat(readDefects(), makeDefects(), programDefects()) }

// TestEveryClaimCanFail holds that no claim passes whatever the node answers.
func TestEveryClaimCanFail(t *testing.T) {
	t.Parallel()
	var got, want []string
	for _, d := range defects() {
		got = append(got, d.claim)
	}
	for _, c := range selftest.Claims() {
		want = append(want, c.ID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("claims with a planted defect (-want +got):\n%s", diff)
	}
}

func TestPlantedDefectsAreFound(t *testing.T) {
	t.Parallel()
	for _, d := range defects() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.options.Only, b.options.AllowReboot = []string{d.claim}, true
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

// TestOneReportNamesAllDefects plants ten defects into one node. The claims in between pass.
func TestOneReportNamesAllDefects(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	planted := slices.DeleteFunc(defects(), func(d defect) bool {
		return !slices.Contains([]string{"facts", "account", "agent", "services", "listeners", "hns", "runtime",
			"programs", "environment", "firewall"}, d.claim)
	})
	if len(planted) != 10 {
		t.Fatalf("%d defects are planted, want 10", len(planted))
	}
	kept := func(proto.Message) error { return nil } // the tampers of defects change the reply itself
	for _, d := range planted {
		if d.plant != nil {
			d.plant(b)
		}
	}
	b.Tamper(func(method string, number int, reply proto.Message, send func(proto.Message) error) error {
		for _, d := range planted {
			if d.tamper == nil {
				continue
			}
			if err := d.tamper(method, number, reply, kept); err != nil {
				return err
			}
		}
		return send(reply)
	})
	for _, d := range planted {
		b.options.Only = append(b.options.Only, d.claim)
	}
	b.options.Only = append(b.options.Only, "shell", "hcs", "names", "registry")
	report, _ := b.run(t)
	got := failures(report, selftest.Failed)
	if len(got) != len(planted) || report.Summary.Passed != 4 {
		t.Errorf("%s; the failures are %v", report.Summary, got)
	}
	for _, d := range planted {
		if !strings.Contains(got[d.claim], d.reason) {
			t.Errorf("%s: the failure is %q, without %q", d.name, got[d.claim], d.reason)
		}
	}
}

// TestReportHasNoNameThatHostnamePrints makes hostname print a name that is not among those of the facts.
func TestReportHasNoNameThatHostnamePrints(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Only = []string{"account"}
	prints("hostname", "OTHER\r\n")(b)
	report, _ := b.run(t)
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if len(failures(report, selftest.Failed)) != 1 || strings.Contains(string(text), "OTHER") {
		t.Errorf("the claim did not fail, or the report has the name: %s", text)
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
