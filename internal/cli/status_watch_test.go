package cli_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/ui"
)

func statusWatchFitsItsSchema(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	run := w.background("status", "--watch", "--interval", "100ms", "-o", "json")
	run.stdout.await(t, `^\{.*\}$`, 1)
	w.replace("kubelet.exe", simulated.BinarySpec{Name: "kubelet", Version: "1.0.9"})
	if code, out := w.swdt(t.Context(), &lines{}, "push"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	run.stdout.await(t, `^\{.*"version":"v?1.0.9".*\}$`, 1)
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(schemas, "status-watch.json"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := documentsThatFit(schema, run.stdout.String())
	if err != nil || n < 2 {
		t.Errorf("%d documents: %v:\n%s", n, err, run.stdout)
	}
	uptime := regexp.MustCompile(`"uptimeSeconds":[0-9.e+-]+`)
	texts := strings.Split(strings.TrimSpace(uptime.ReplaceAllString(run.stdout.String(), "")), "\n")
	for i := 1; i < len(texts); i++ {
		if texts[i] == texts[i-1] {
			t.Errorf("an unchanged status is printed twice: %s", texts[i])
		}
	}
}

// As text, each change is printed below the one before, with the time.
func TestStatusWatchPrintsChanges(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	run := w.background("status", "--watch", "--interval", "100ms")
	run.stdout.await(t, `^kubelet `, 1)
	if code, out := w.swdt(t.Context(), &lines{}, "push"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	run.stdout.await(t, `^kubelet +v?1.0.0 .* running .* none`, 1)
	run.stdout.await(t, `^\d\d:\d\d:\d\d$`, 2)
}

// A cluster in the same files is named, and does not keep the nodes from being watched. Without a node, there is nothing
// to watch.
func TestStatusWatchBesideACluster(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	w.write("cluster.yaml", []byte("apiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev}\n"+
		"spec: {controlPlane: {kind: {}}}\n"))
	cluster := filepath.Join(w.folder, "cluster.yaml")
	run := w.background("status", "--watch", "--interval", "100ms", "-c", cluster)
	run.stderr.await(t, `--watch looks at the nodes, not at the cluster dev of .*cluster.yaml; without it, status shows both`, 1)
	run.stdout.await(t, `^kubelet `, 1)

	var out, story lines
	code := cli.Run(t.Context(), ui.Streams{Out: &out, Err: &story}, []string{"status", "--watch", "-c", cluster},
		cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
	if code != 2 || !strings.Contains(story.String(), "--watch looks at nodes, and the files have none") {
		t.Errorf("without a node: exit code %d: %s", code, &story)
	}
}
