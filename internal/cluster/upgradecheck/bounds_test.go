package upgradecheck_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
)

// A text with more settings than a reader keeps is read in part, and the report names it once. Other texts are read.
func TestSettingsOfATextAreBounded(t *testing.T) {
	const most, sent = 5_000, 60_000
	var gates strings.Builder
	gates.WriteString("featureGates:\n")
	for i := range sent {
		fmt.Fprintf(&gates, "  Gate%d: true\n", i)
	}
	r := upgradecheck.NewReader(load(t))
	r.Config(kubesettings.Kubelet, []byte(gates.String()), upgradecheck.Effective, upgradecheck.Place{Node: "win-1", Field: "configz"})
	r.Config(kubesettings.Kubelet, []byte("featureGates: {NodeLogQuery: true}\n"), upgradecheck.Effective,
		upgradecheck.Place{Node: "win-2", Field: "configz"})
	if len(r.Settings) != most+1 {
		t.Errorf("%d settings, want %d", len(r.Settings), most+1)
	}
	if len(r.Unread) != 1 || r.Unread[0].Place.Node != "win-1" || r.Unread[0].Why != "has more than 5000 settings, so the rest was not read" {
		t.Errorf("unread: %+v", r.Unread)
	}
}

// A script's lines share their regular expressions: the work for a line does not have their compilation, which is
// hundreds of allocations.
func TestScriptsCompileOnce(t *testing.T) {
	const lines, most = 1_000, 30
	text := strings.Repeat("kubelet.exe --v=2 --node-ip=10.0.0.4\n", lines)
	r := upgradecheck.NewReader(load(t))
	if got := testing.AllocsPerRun(1, func() { r.Script(text, upgradecheck.Place{File: "a.ps1"}) }) / lines; got > most {
		t.Errorf("%.0f allocations for a line, at most %d are expected", got, most)
	}
}

// The memory for a line grows as its flags and gates do, and not as their square: one line of a hostile script may have
// mebibytes.
func TestALongLineOfAScriptIsReadOnce(t *testing.T) {
	allocated := func(flags int) uint64 {
		line := "Start KUBELET " + strings.Repeat("--no-such-flag WinDSR=maybe --v=2 ", flags)
		r := upgradecheck.NewReader(load(t))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r.Script(line, upgradecheck.Place{File: "a.ps1"})
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	const flags, most = 2_000, 6
	if small, large := allocated(flags), allocated(4*flags); large > most*small {
		t.Errorf("%d bytes for %d flags, and %d for four times as many", small, flags, large)
	}
}

// The program that precedes a flag on its line decides whose it is, whatever the letters' case and beside letters that
// are longer in lower case.
func TestProgramsOnALine(t *testing.T) {
	for line, want := range map[string]string{
		"KUBELET.exe --register-node=x --container-runtime=remote": "kubelet",
		"ȺȺȺȺ Kubelet.exe --container-runtime=remote":              "kubelet",
		"kubelet & kube-log-runner --container-runtime=remote":     "",
		"$x --container-runtime=remote kubelet":                    "",
	} {
		r := upgradecheck.NewReader(load(t))
		r.Script(line, upgradecheck.Place{File: "a.ps1"})
		got := ""
		for _, s := range r.Settings {
			if s.Name == "container-runtime" {
				got = string(s.Program)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
