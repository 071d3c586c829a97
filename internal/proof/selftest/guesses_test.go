package selftest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui"
)

// A run judges each guess by its claims, and by nothing more.
func TestVerdictsOnGuesses(t *testing.T) {
	claim := func(id string, outcome Outcome, answers ...Answer) Result {
		return Result{ID: id, Outcome: outcome, Answers: answers}
	}
	defender := func(runs string) Result { return claim("services", Passed, Answer{Key: runsDefender, Value: runs}) }
	shell := func(name string) Result { return claim("shell", Passed, Answer{Key: defaultShell, Value: name}) }
	files, agent := claim("files", Passed), claim("agent", Passed)
	const scanned, holder, powershell, bash, pipes, restart, containers, query = 2, 3, 10, 11, 15, 16, 19, 20
	for name, c := range map[string]struct {
		ssh    string
		claims []Result
		want   map[int]Verdict // of the guesses that are not open
	}{
		"nothing ran": {"OpenSSH_for_Windows_9.5", nil, nil},
		"no scanner":  {"", []Result{defender("false"), claim("running", Passed), claim("push", Passed)}, nil},
		"a scanner": {"", []Result{defender("true"), claim("running", Passed), claim("push", Passed)},
			map[int]Verdict{scanned: Right}},
		"a scanner that blocks": {"", []Result{defender("true"), claim("running", Failed), claim("push", NotRun)},
			map[int]Verdict{scanned: Wrong}},
		"no push": {"", []Result{defender("true"), claim("running", Passed), claim("push", NotRun)}, nil},
		"a holder without a name": {"", []Result{claim("held", Passed, Answer{Key: holderNamed, Value: "false"})},
			map[int]Verdict{holder: Wrong}},
		"a named holder": {"", []Result{claim("held", Passed, Answer{Key: holderNamed, Value: "true"})},
			map[int]Verdict{holder: Right}},
		"PowerShell": {"OpenSSH_for_Windows_9.5", []Result{shell("powershell.exe"), agent, files},
			map[int]Verdict{powershell: Right}},
		"bash": {"OpenSSH_for_Windows_9.5", []Result{shell("bash.exe"), agent, claim("files", Failed), claim("lost", Passed)},
			map[int]Verdict{bash: Wrong, pipes: Wrong}},
		"cmd": {"OpenSSH_for_Windows_9.5", []Result{shell("not set"), agent, files, claim("lost", Passed)},
			map[int]Verdict{pipes: Right}},
		"undone by a restart": {"", []Result{claim("guardian", Passed, Answer{Key: versionAfterRestart, Value: first})},
			map[int]Verdict{restart: Wrong}},
		"finished after a restart": {"", []Result{claim("guardian", Passed, Answer{Key: versionAfterRestart, Value: second})},
			map[int]Verdict{restart: Right}},
		"a container": {"", []Result{claim("processes", Passed, Answer{Key: managersInSession0, Value: "2"})},
			map[int]Verdict{containers: Wrong}},
		"a long query": {"", []Result{claim("events", Passed, Answer{Key: longQueryRefused, Value: "true"})},
			map[int]Verdict{query: Right}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Report{System: System{Kind: kindWindows, OpenSSH: c.ssh}, Claims: c.claims}
			r.complete()
			for _, g := range r.Guesses {
				want := c.want[g.Number]
				if want == "" {
					want = Open
				}
				if g.Verdict != want {
					t.Errorf("guess %d, %s, is %s, not %s", g.Number, g.Belief, g.Verdict, want)
				}
			}
		})
	}
}

// A person with a real Windows sees the guesses that turned out wrong or right, in their order, without a flag.
func TestGuessesOfARealWindowsArePrinted(t *testing.T) {
	r := Report{System: System{Kind: kindWindows}, Claims: []Result{
		{ID: "events", Outcome: Passed, Answers: []Answer{{Key: longQueryRefused, Value: "false"}}},
		{ID: "guardian", Outcome: Passed, Answers: []Answer{{Key: versionAfterRestart, Value: second}}},
	}}
	r.complete()
	text := func() string {
		var out bytes.Buffer
		if err := r.WriteText(ui.NewPage(&out, false)); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	lines := strings.Split(text(), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "GUESS") })
	if at < 0 || !strings.HasPrefix(lines[at+1], "16") || !strings.Contains(lines[at+1], "right") ||
		!strings.HasPrefix(lines[at+2], "20") || !strings.Contains(lines[at+2], "wrong") ||
		!strings.HasPrefix(lines[at+3], "27 of 29 guesses stay open") {
		t.Errorf("the text has not the guesses 16 and 20 alone:\n%s", text())
	}
	r.System.Kind = "simulated" // it answers by them
	if strings.Contains(text(), "GUESS") {
		t.Errorf("a stand-in settles a guess:\n%s", text())
	}
}
