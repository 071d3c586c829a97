package netpol_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/proof/netpol"
)

func standard(t *testing.T, pods int) netpol.Model {
	t.Helper()
	m, err := netpol.Standard(pods, corev1.ProtocolTCP, corev1.ProtocolUDP)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func theCase(t *testing.T, names ...string) []netpol.Case {
	t.Helper()
	all, err := netpol.Cases()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(c netpol.Case) bool { return !slices.Contains(names, c.Name) })
}

// The pod network is wrong at three cells of 1,520, and exactly these are found.
func TestThreeWrongCellsAreFound(t *testing.T) {
	w := newWorld(t, 61)
	w.probe, w.bindDelay = buildProbe(t), 300*time.Millisecond
	w.dig(8080, 8081)
	planted := map[string]bool{"z/b→x/c TCP/8080": true, "x/a→y/d UDP/8081": false, "y/f→x/a UDP/8080": true}
	w.wrong = func(from, to, port string) (passes, decided bool) {
		passes, decided = planted[from+"→"+to+" "+port]
		return passes, decided
	}
	report, err := w.run(t.Context(), netpol.Options{Model: standard(t, 20), Cases: theCase(t, "deny-ingress")})
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

// Against a network that obeys, cases are as meant, and the time that a policy took to bind is measured.
func TestARightNetworkIsAsMeant(t *testing.T) {
	w := newWorld(t, 62)
	w.probe, w.bindDelay = buildProbe(t), 150*time.Millisecond
	w.dig(8080, 8081)
	cases := theCase(t, "namespace-and-pod", "port-name", "both-sides", "ip-block-except")
	report, err := w.run(t.Context(), netpol.Options{Model: standard(t, netpol.MinPods), Cases: cases})
	if err != nil {
		t.Fatalf("%v\n%+v", err, report.Cases)
	}
	if len(report.Cases) != 5 {
		t.Errorf("%d cases", len(report.Cases))
	}
	for _, c := range report.Cases[1:] {
		if !c.Released || c.Denied == 0 || c.BindSeconds < w.bindDelay.Seconds()/2 {
			t.Errorf("%s: released %v, %d denied, bound after %.2f s", c.Name, c.Released, c.Denied, c.BindSeconds)
		}
	}
	w.nothingIsLeft(t)
}
