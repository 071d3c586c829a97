package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/testing/suitetest"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
)

// Each pushed build is followed by the commands of --then, with the node files of the watch. A failure ends
// neither the watch nor the push of the next build.
func TestWatchThen(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	run := w.watch("--then", "exec -- hostname", "--then", `swdt exec -- cmd /c "exit 3"`, "--then", "exec -- whoami")
	for n := range 2 {
		run.stdout.await(t, `^win-node\s*$`, n+1)
		run.stderr.await(t, `^\d\d:\d\d:\d\d then exec -- hostname: passed in `, n+1)
		run.stderr.await(t, `^\d\d:\d\d:\d\d then swdt exec -- cmd /c "exit 3": failed \(exit code 3\) in `, n+1)
		if n == 0 {
			w.replace("kubelet.exe", simulated.BinarySpec{Name: "kubelet", Version: "1.0.1"})
		}
	}
	if strings.Contains(run.stdout.String(), "administrator") {
		t.Errorf("a command was run after one that failed:\n%s", run.stdout)
	}
}

// A build that the service would not run is followed by no command: it would test the old binary.
func TestWatchThenOfAWrongDestination(t *testing.T) {
	for mistake, mend := range map[string][2]string{
		"service kubelet runs ":      {"destination: 'C:\\k\\kubelet.exe'", `destination: 'C:\elsewhere\kubelet.exe'`},
		"there is no service kublet": {"name: kubelet", "name: kublet"},
	} {
		t.Run(mistake, func(t *testing.T) {
			w := newWorkplace(t)
			w.build("1.0.0")
			text, err := os.ReadFile(filepath.Join(w.folder, "swdt.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			w.write("swdt.yaml", []byte(strings.Replace(string(text), mend[0], mend[1], 1)))
			run := w.watch("--then", "exec -- hostname")
			run.stderr.await(t, mistake, 1)
			w.replace("kubelet.exe", simulated.BinarySpec{Name: "kubelet", Version: "1.0.1"})
			run.stderr.await(t, mistake, 2)
			if strings.Contains(run.stdout.String(), "win-node") || strings.Contains(run.stderr.String(), "then exec") {
				t.Errorf("a command was run:\n%s%s", run.stdout, run.stderr)
			}
		})
	}
}

// A new build interrupts the specs of the old one before it changes the node, and is tested then.
func TestWatchThenInterruptsSpecs(t *testing.T) {
	binary := suitetest.Build(t)
	api, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := api.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	workdir.Change(t, t.TempDir())
	w := newWorkplace(t)
	w.build("1.0.0")
	run := w.watch("--then", "e2e --skip-checks --focus Endless --binary '"+binary+"' --kubeconfig '"+kubeconfig+"'")
	run.stderr.await(t, `^0 of 1 specs.*should wait forever`, 1)
	w.replace("kubelet.exe", simulated.BinarySpec{Name: "kubelet", Version: "1.0.1"})
	run.stderr.await(t, `^\d\d:\d\d:\d\d then e2e .*: interrupted by a new build$`, 1)
	run.stdout.await(t, `^\d\d:\d\d:\d\d kubelet  .*healthy`, 2)
	run.stderr.await(t, `^0 of 1 specs.*should wait forever`, 2)
	got := run.stdout.String()
	if strings.Index(got, "1 of 14 specs: 0 passed, 1 failed") > strings.LastIndex(got, "healthy") {
		t.Errorf("the node was changed before the specs had ended:\n%s", got)
	}
}

// Mistakes in the commands are found before anything is contacted.
func TestWatchThenUsage(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	for text, want := range map[string]string{
		"":                                "it can run e2e, readiness run,",
		"push":                            "it can run e2e, readiness run,",
		"sandbox down":                    "it can run e2e, readiness run,",
		"push --watch":                    "it can run e2e, readiness run,",
		"rm -rf /":                        "it can run e2e, readiness run,",
		"e2e --focus 'a":                  "close the quotes",
		"e2e":                             "no specs are selected",
		"e2e --focus '[sig'":              "is no regular expression",
		"e2e --focus a; status":           "no regular expression|has no command|unknown",
		"e2e --fokus a":                   "unknown flag: --fokus",
		"status -o json":                  "its result is shown in text: leave -o out",
		"-v status":                       "write the command first: status …",
		"cluster check --wait-timeout 0s": "--wait-timeout 0s: use a positive time",
		"readiness run --assume x":        "there is no need",
		"cluster check extra":             "extra",
		"e2e --focus a --no-such-flag":    "unknown flag: --no-such-flag",
	} {
		story := &lines{}
		code, _ := w.swdt(t.Context(), story, "push", "--watch", "--then", text)
		found := false
		for part := range strings.SplitSeq(want, "|") {
			found = found || strings.Contains(story.String(), part)
		}
		if code != 2 || !found {
			t.Errorf("%q: exit code %d, want 2 and %q:\n%s", text, code, want, story)
		}
	}
	story := &lines{}
	if code, _ := w.swdt(t.Context(), story, "push", "--then", "status"); code != 2 ||
		!strings.Contains(story.String(), "set --watch, too") {
		t.Errorf("without --watch: exit code %d: %s", code, story)
	}
}
