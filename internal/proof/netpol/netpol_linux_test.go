package netpol_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/proof/netpol"
	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/ui"
)

// The pod network is wrong at three cells of 1,520, and exactly these are found.
func TestThreeWrongCellsAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 61)
	w.probe, w.bindAfter = buildProbe(t), 20
	w.dig(8080, 8081)
	planted := map[string]bool{"z/b→x/c TCP/8080": true, "x/a→y/d UDP/8081": false, "y/f→x/a UDP/8080": true}
	w.wrong = func(from, to, port string) (passes, decided bool) {
		passes, decided = planted[from+"→"+to+" "+port]
		return passes, decided
	}
	report, err := w.run(t.Context(), netpol.Options{Model: standard(t, 20), Cases: theCase(t, "deny-ingress"),
		Settle: wrongSettle})
	var differs *netpol.DiffersError
	if !errors.As(err, &differs) || differs.Wrong != 3 || len(report.Cases) != 2 {
		t.Fatalf("the error is %v\n%+v", err, report)
	}
	t.Logf("20 pods, %d cells, %.1f s", differs.Cells, report.Seconds)
	got := map[string]bool{}
	for _, d := range report.Cases[1].Differences {
		got[d.From+"→"+d.To+" "+d.Port] = d.Outcome == "connected"
		if d.Expected == "denied" && !slices.Equal(d.Policies, []string{"x/deny"}) {
			t.Errorf("%s is denied by %v", d, d.Policies)
		}
	}
	if diff := cmp.Diff(planted, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if before := report.Cases[0]; before.Result != netpol.AsMeant || before.Cells != 1520 {
		t.Errorf("before: %+v", before)
	}
	marks := ""
	for _, table := range report.Cases[1].Tables {
		for _, row := range table.Rows {
			marks += strings.Trim(row, ".x-")
		}
	}
	if len(marks) != 3 || strings.Count(marks, "P") != 2 || strings.Count(marks, "D") != 1 {
		t.Errorf("the tables have the marks %q", marks)
	}
	if !report.Cases[1].Released {
		t.Error("not released")
	}
	w.nothingIsLeft(t)
}

// For the whole table of 20 pods, each pod is asked for two rounds before a policy, two with it, and two after it.
// All pods work at the same time. So the tables take less than 30 s, even if each round takes its whole timeout, and
// cells are wrong until the time is over that a policy may take to bind.
func TestTheTableOf20PodsNeedsFewRounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 63)
	w.probe, w.rounds = buildProbe(t), map[string][]round{}
	report, err := w.run(t.Context(), netpol.Options{Model: standard(t, 20), Cases: theCase(t, "deny-ingress"),
		Settle: netpol.DefaultSettle, ProbeTimeout: netpol.DefaultProbeTimeout})
	if err != nil {
		t.Fatalf("%v\n%+v", err, report.Cases)
	}
	t.Logf("%d cells in each of 3 tables, %.1f s", report.Cases[0].Cells, report.Seconds)
	look, verdict := round{500 * time.Millisecond, 19 * 4}, round{netpol.DefaultProbeTimeout, 19 * 4}
	want, most := map[string][]round{}, netpol.DefaultSettle
	for _, p := range report.Pods {
		want[p.Name] = []round{look, verdict, look, verdict, look, verdict}
	}
	for _, r := range want[report.Pods[0].Name] {
		most += r.Timeout
	}
	// The last look before the time is over ends after it, and each table has one more pause.
	most += look.Timeout + 3*100*time.Millisecond
	if diff := cmp.Diff(want, w.rounds); diff != "" || len(want) != 20 {
		t.Errorf("the rounds of %d pods (-want +got)\n%s", len(want), diff)
	}
	if most >= 30*time.Second {
		t.Errorf("the tables take up to %s", most)
	}
	w.nothingIsLeft(t)
}

// Against a network that obeys, cases are as meant, and the time that a policy took to bind is measured.
func TestARightNetworkIsAsMeant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 62)
	w.probe, w.bindAfter = buildProbe(t), netpol.MinPods // the first round of each pod
	cases := theCase(t, "namespace-and-pod", "port-name", "ip-block-except")
	report, err := w.run(t.Context(), netpol.Options{Model: standard(t, netpol.MinPods), Cases: cases})
	if err != nil {
		t.Fatalf("%v\n%+v", err, report.Cases)
	}
	if len(report.Cases) != 4 {
		t.Errorf("%d cases", len(report.Cases))
	}
	for _, c := range report.Cases[1:] {
		const pause = 0.1 // before the second round of a pod, in seconds
		if !c.Released || c.Denied == 0 || c.BindSeconds < pause {
			t.Errorf("%s: released %v, %d denied, bound after %.2f s", c.Name, c.Released, c.Denied, c.BindSeconds)
		}
	}
	w.nothingIsLeft(t)
}

// Ctrl-C at any stage leaves nothing.
func TestInterruptionLeavesNothing(t *testing.T) {
	t.Parallel()
	for i, at := range []string{"making 6 pods", "x/a: copying the probe", "case 1 of 2: before", "case 2 of 2"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, byte(90+i))
			w.probe = buildProbe(t)
			w.dig(8080, 8081)
			ctx, cancel := context.WithCancelCause(t.Context())
			interrupted := errors.New("interrupted")
			story := &stopping{Discard: ui.Discard{}, at: at, stop: func() { cancel(interrupted) }}
			_, err := w.run(ctx, netpol.Options{Model: standard(t, netpol.MinPods), Cases: theCase(t, "deny-ingress"),
				Reporter: func(pod string) ui.Reporter { return story.of(pod) }})
			if !errors.Is(err, interrupted) {
				t.Errorf("the error is %v", err)
			}
			w.nothingIsLeft(t)
		})
	}
}

// stopping is a reporter that calls stop at a step.
type stopping struct {
	ui.Discard
	pod, at string
	stop    func()
}

func (s *stopping) of(pod string) *stopping {
	if pod != "" {
		pod += ": "
	}
	return &stopping{pod: pod, at: s.at, stop: s.stop}
}

func (s *stopping) Step(format string, values ...any) {
	if strings.HasPrefix(s.pod+fmt.Sprintf(format, values...), s.at) {
		s.stop()
	}
}

// The answers of a hostile pod neither control the terminal nor flood the result, and are no verdict.
func TestHostilePods(t *testing.T) {
	t.Parallel()
	flood := `\u001b]0;owned\u0007\u202e` + strings.Repeat("A", 100_000)
	for i, line := range []string{
		`{"version":1,"results":[{"outcome":"connected","seen":"` + flood + `"}]}`,
		`{"version":1,"error":"` + flood + `"}`,
		`{"version":1,"served":[{"error":"` + flood + `"},{},{},{}]}`,
		`{"version":9}`,
		flood,
		strings.Repeat("x", 3<<20),
		"",
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, byte(100+i))
			w.probe = buildProbe(t)
			w.alter = func([]byte) []byte { return []byte(line + "\n") }
			report, err := w.run(t.Context(), netpol.Options{Model: standard(t, netpol.MinPods)})
			if err == nil || report.Result != netpol.Unmeasured {
				t.Fatalf("%v: %+v", err, report)
			}
			if text := err.Error(); len(text) > 3000 || strings.ContainsAny(text, "\x1b\x07\u202e") {
				t.Errorf("%d bytes: %.200q", len(text), text)
			}
			w.nothingIsLeft(t)
		})
	}
}

// Results with unknown outcomes and hostile texts are bounded differences.
func TestHostileResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 110)
	w.probe = buildProbe(t)
	hostile := "\x1b]0;owned\x07\u202e" + strings.Repeat("B", 5_000)
	w.alter = func(line []byte) []byte {
		var reply netprobe.Reply
		if err := json.Unmarshal(line, &reply); err != nil {
			t.Error(err)
		}
		for i := range reply.Results {
			reply.Results[i] = netprobe.Result{Outcome: hostile, Seen: hostile, Text: hostile}
		}
		text, err := json.Marshal(reply)
		if err != nil {
			t.Error(err)
		}
		return append(text, '\n')
	}
	report, err := w.run(t.Context(), netpol.Options{Model: standard(t, netpol.MinPods), Settle: time.Millisecond})
	var differs *netpol.DiffersError
	if !errors.As(err, &differs) || differs.Wrong != 120 {
		t.Fatalf("the error is %v", err)
	}
	var text bytes.Buffer
	page := ui.NewPage(&text, false)
	if err := errors.Join(report.WriteText(page), page.Flush(), report.WritePage(&text)); err != nil {
		t.Fatal(err)
	}
	if text.Len() > 300_000 || strings.ContainsAny(text.String(), "\x1b\x07\u202e") {
		t.Errorf("%d bytes", text.Len())
	}
	for _, d := range report.Cases[0].Differences {
		if d.Outcome != netprobe.Failed || d.Seen != "" || len(d.Text) > 1000 {
			t.Errorf("%+v", d)
		}
	}
}

// theCase returns the standard cases with these names.
func theCase(t *testing.T, names ...string) []netpol.Case {
	t.Helper()
	all, err := netpol.Cases()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(c netpol.Case) bool { return !slices.Contains(names, c.Name) })
}
