//go:build e2e && linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterapi "github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/verdict"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane/controlplanetest"
)

// realSpecs is the lab's e2e.test, built from the module of Kubernetes.
const realSpecs = "e2e.test-v1.36.3"

// TestRealSpecsOnARealAPIServer runs specs of Kubernetes' own e2e.test that need only an API server and
// its controllers, against a real control plane without nodes.
func TestRealSpecsOnARealAPIServer(t *testing.T) {
	if os.Getenv("SWDT_LAB_CLUSTER") != "required" {
		t.Skip("needs the lab's e2e.test and control plane: run make e2e")
	}
	binary := lab(t, realSpecs)
	plane := controlplanetest.Start(t, controlplane.Options{})
	t.Setenv("KUBECONFIG", plane.Kubeconfig())
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // swdt keeps the durations of specs there
	folder := filepath.Join(t.TempDir(), "results")
	const focus = `ResourceQuota should create a ResourceQuota and ` +
		`(ensure its status is promptly calculated|capture the life of a (secret|configMap))\.`
	args := []string{"e2e", "--binary", binary, "--focus", focus, "--out", folder}

	if r := swdt(t, args...); r.code != 1 {
		t.Fatalf("a cluster without Windows nodes: exit code %d, want 1", r.code)
	}
	r := swdtWithin(t, 8*time.Minute, append(args, "--skip-checks", "-o", "json")...)
	if r.code != 0 {
		t.Fatalf("exit code %d", r.code)
	}
	report := decoded[verdict.Report](t, r)
	for _, s := range report.Specs {
		t.Logf("%s %.1f s %s", s.Words(), s.Seconds.Max, s.Name)
	}
	if diff := cmp.Diff(verdict.Summary{Passed: 3}, report.Summary); diff != "" || report.Total < 7000 {
		t.Errorf("%d specs in total (-want +got):\n%s", report.Total, diff)
	}
	killedRunLeavesNothing(t, plane.Kubeconfig(), binary)
	if r := swdt(t, "e2e", "list", "--binary", binary, "--focus", "no spec has this name"); r.code != 2 {
		t.Errorf("no spec matches: exit code %d, want 2", r.code)
	}
}

// killedRunLeavesNothing kills swdt while a spec runs. The next command removes what is left of its
// namespaces.
func killedRunLeavesNothing(t *testing.T, kubeconfig, binary string) {
	t.Helper()
	api, err := clusterapi.Open(clusterapi.Options{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	namespaces := func() []string {
		all, err := api.Clientset().CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "e2e-run"})
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, n := range all.Items {
			if n.DeletionTimestamp == nil {
				names = append(names, n.Name)
			}
		}
		return names
	}
	args := []string{"e2e", "--binary", binary, "--skip-checks", "--focus"}
	cmd := exec.CommandContext(t.Context(), environment(t, "SWDT_BIN"),
		append(args, "capture the life of a configMap", "--out", filepath.Join(t.TempDir(), "killed"))...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "the run makes a namespace", func() error {
		if len(namespaces()) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	t.Logf("killed, with the namespaces %q", namespaces())
	within(t, 2*time.Minute, "nothing of the killed run is left", func() error {
		ok(t, append(args, "status is promptly calculated", "--out", filepath.Join(t.TempDir(), "next"))...)
		if left := namespaces(); len(left) > 0 {
			return fmt.Errorf("left: %q", left)
		}
		return nil
	})
}
