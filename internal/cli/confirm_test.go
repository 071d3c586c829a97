//go:build linux || darwin

package cli_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
	"github.com/swdt-dev/swdt/internal/ui"
)

// commandsThatAsk returns a command line of each command with --yes. vmFile is the node
// file of the VM vm-1, beside which is the document of a cluster, disk an image that exists, and
// kubeconfig names a cluster.
func commandsThatAsk(stateDir, vmFile, disk, kubeconfig string) map[string][]string {
	return map[string][]string{
		"down":                {"down", "-c", filepath.Join(filepath.Dir(vmFile), "cluster.yaml")},
		"cluster delete":      {"cluster", "delete", "-c", filepath.Join(filepath.Dir(vmFile), "cluster.yaml")},
		"reset":               {"reset", "--no-drain", "-n", "win"},
		"hns remove":          {"hns", "remove", "Calico", "-n", "win"},
		"hcs kill":            {"hcs", "kill", "default/burner/burn", "-n", "win"},
		"sandbox down":        {"sandbox", "down", "--all", "--state-dir", stateDir},
		"vm image bake":       {"vm", "image", "bake", "--out", disk, "-c", vmFile, "-n", "vm-1"},
		"vm image remove":     {"vm", "image", "remove", imageKey},
		"network remove":      {"network", "remove", "--kubeconfig", kubeconfig},
		"fleet uninstall":     {"fleet", "uninstall", "--kubeconfig", kubeconfig},
		"network services":    {"network", "services", "--fix", "--kubeconfig", kubeconfig, "-n", "win"},
		"upgrade check":       {"upgrade", "check", "--fix", "--kubernetes", "1.38", "-n", "win"},
		"scale run":           {"scale", "run", "--kubeconfig", kubeconfig, "-n", "win"},
		"vm delete":           {"vm", "delete", "-c", vmFile, "-n", "vm-1"},
		"vm network remove":   {"vm", "network", "remove", "-c", vmFile, "-n", "vm-1"},
		"vm snapshot remove":  {"vm", "snapshot", "remove", "clean", "-c", vmFile, "-n", "vm-1"},
		"vm snapshot restore": {"vm", "snapshot", "restore", "clean", "-c", vmFile, "-n", "vm-1"},
	}
}

// imageKey is the key of a golden image.
const imageKey = "0123456789abcdef"

// clusterDocument describes a cluster of kind.
const clusterDocument = `apiVersion: windows.k8s.io/v1alpha1
kind: Cluster
metadata: {name: dev}
spec: {controlPlane: {kind: {}}}
`

// vmNode is a node file of a VM.
const vmNode = `apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata: {name: vm-1}
spec:
  machine: {driver: simulated, image: {disk: base.qcow2}}
`

// kubeconfigOfNothing names a cluster that does not exist.
const kubeconfigOfNothing = `{apiVersion: v1, kind: Config, current-context: a,
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: a, user: {}}],
contexts: [{name: a, context: {cluster: a, user: a}}]}
`

// Every command that asks follows the same rule: no ends it with exit code 1, and
// without a terminal it requires --yes before it reports any other mistake.
func TestEveryQuestionHasOneRule(t *testing.T) {
	w := newWorkplace(t)
	stateDir := filepath.Join(w.folder, "sandboxes")
	sandboxIn(t, stateDir)
	w.write("vm.yaml", []byte(vmNode))
	w.write("cluster.yaml", []byte(clusterDocument))
	t.Setenv("SWDT_TEST_KIND", filepath.Join(w.folder, "kind"))
	w.write("disk.qcow2", []byte("a disk"))
	commands := commandsThatAsk(stateDir, filepath.Join(w.folder, "vm.yaml"), filepath.Join(w.folder, "disk.qcow2"),
		filepath.Join(w.folder, "admin.conf"))
	w.write("base.qcow2", nil)
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	made := filepath.Join(data, "swdt", "up")
	err := os.MkdirAll(made, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(made, "dev.json"), []byte(`{"version": 1, "name": "dev", "cluster": true}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	create := []string{"vm", "create", "-c", filepath.Join(w.folder, "vm.yaml"), "-n", "vm-1"}
	if code, _ := w.swdt(t.Context(), &lines{}, create...); code != 0 {
		t.Fatalf("vm create: exit code %d", code)
	}
	cache := filepath.Join(w.folder, "cache")
	t.Setenv("XDG_CACHE_HOME", cache)
	if err := os.MkdirAll(filepath.Join(cache, "swdt", "images", imageKey), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("admin.conf", []byte(kubeconfigOfNothing))
	if found, known := slices.Sorted(slices.Values(cli.CommandsThatAsk())),
		slices.Sorted(maps.Keys(commands)); !slices.Equal(found, known) {
		t.Fatalf("these commands have --yes: %q; this test knows %q", found, known)
	}
	for name, args := range commands {
		t.Run(name+" answered no", func(t *testing.T) {
			if name == "network services" || name == "upgrade check" {
				return // asks, with the same confirm, only about what a look at the cluster or the node has found
			}
			screen := newTerminal(t, 24, 120)
			code := w.begin(t.Context(), ui.Streams{In: screen.File, Out: &lines{}, Err: screen.File}, args...)
			screen.await("the question", func(text string) bool { return strings.Contains(text, "(yes/no) ") })
			screen.typed("no\n")
			got, text := <-code, screen.hangUp()
			if got != 1 || !strings.Contains(text, "the answer was no: nothing was changed") {
				t.Errorf("exit code %d, want 1:\n%s", got, text)
			}
		})
		t.Run(name+" without a terminal", func(t *testing.T) {
			story := &lines{}
			args := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--no-drain" })
			if code, _ := w.swdt(t.Context(), story, args...); code != 2 ||
				!strings.Contains(story.String(), "there is no terminal to ask on: ") {
				t.Errorf("exit code %d, want 2: %s", code, story)
			}
		})
	}
}

// sandboxIn runs a sandbox until the test ends.
func sandboxIn(t *testing.T, stateDir string) {
	t.Helper()
	run := func(args ...string) {
		if out, err := exec.Command("swdt", append(args, "--state-dir", stateDir)...).CombinedOutput(); err != nil {
			t.Errorf("swdt %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	run("sandbox", "up")
	t.Cleanup(func() { run("sandbox", "down", "--all", "--yes") })
}

func TestConfigFilesWithCommas(t *testing.T) {
	workdir.Change(t, t.TempDir())
	for _, name := range []string{"a.yaml", "b.yaml", "x,y.yaml", "a.yaml,both.yaml", "both.yaml"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for value, want := range map[string][]string{
		"a.yaml":           {"a.yaml"},
		"a.yaml,b.yaml":    {"a.yaml", "b.yaml"},
		"a.yaml,-":         {"a.yaml", "-"},
		"x,y.yaml":         {"x,y.yaml"},
		"a.yaml,both.yaml": {"a.yaml,both.yaml"},    // the name as typed takes precedence
		"a.yaml,none.yaml": {"a.yaml", "none.yaml"}, // the one that is missing is named
		"none,one":         {"none,one"},
		"":                 {""},
	} {
		if got := cli.SplitAtCommas(value); !slices.Equal(got, want) {
			t.Errorf("-c %s: %q, want %q", value, got, want)
		}
	}
}
