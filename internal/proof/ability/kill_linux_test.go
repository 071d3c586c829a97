package ability_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/clustertest"
	"github.com/swdt-dev/swdt/internal/proof/ability"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// childFolder makes this program a run that the test kills. Its value is the folder of the test.
const childFolder = "SWDT_TEST_ABILITY_FOLDER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(childFolder); folder != "" {
		c, err := cluster.Open(cluster.Options{Kubeconfig: filepath.Join(folder, "admin.conf")})
		if err == nil {
			err = quick(context.Background(), c, folder)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// quick runs a probe whose pod does not start, since nothing schedules it.
func quick(ctx context.Context, c *cluster.Cluster, folder string) error {
	records, err := leftover.Open(filepath.Join(folder, "records"))
	if err != nil {
		return err
	}
	_, err = ability.Run(ctx, c, ability.Options{Probes: []string{ability.CPULimit}, Records: records,
		Wait: 200 * time.Millisecond, Program: func(string, string) ([]byte, error) { return nil, nil }})
	return err
}

// A run is killed at a change that it wants to make, before or after the API server has made it: the namespace, the
// ServiceAccount, the pod, and the removal of the namespace. The next command leaves no namespace of the user's runs,
// and does not touch that of another user, with the same labels and another ID.
func TestKilledAtAnyChange(t *testing.T) {
	for at := range int32(4) {
		for _, drop := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d dropped %v", at+1, drop), func(t *testing.T) {
				t.Parallel()
				killAt(t, at+1, drop)
			})
		}
	}
}

func killAt(t *testing.T, at int32, drop bool) {
	api, err := apiserver.Start(apiserver.Options{NoPodNetwork: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	folder := t.TempDir()
	if err := api.WriteKubeconfig(filepath.Join(folder, "admin.conf")); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(cluster.Options{Kubeconfig: filepath.Join(folder, "admin.conf")})
	if err != nil {
		t.Fatal(err)
	}
	plant(t, c)
	run := exec.CommandContext(t.Context(), os.Args[0])
	run.Env = append(os.Environ(), childFolder+"="+folder)
	var changes atomic.Int32
	started, killed := make(chan struct{}), make(chan struct{})
	api.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		own := strings.HasPrefix(r.Namespace+r.Name, "swdt-ability-") || r.Resource == "namespaces"
		if !own || r.Verb != "create" && r.Verb != "delete" || changes.Add(1) != at {
			return apiserver.Verdict{}
		}
		<-started
		close(killed)
		_ = run.Process.Kill()
		return apiserver.Verdict{Drop: drop}
	})
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	close(started)
	_ = run.Wait() // fails, since it is killed
	select {
	case <-killed:
	default:
		t.Fatalf("the run ended after %d changes", changes.Load())
	}
	api.OnRequest(nil)
	if err := quick(t.Context(), c, folder); err != nil {
		t.Errorf("the next command: %v", err)
	}
	list, err := c.Clientset().CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, n := range list.Items {
		if strings.HasPrefix(n.Name, "swdt-") {
			left = append(left, n.Name)
		}
	}
	if diff := cmp.Diff([]string{"swdt-ability-other"}, left); diff != "" {
		t.Errorf("the namespaces (-want +got)\n%s", diff)
	}
}

// plant makes a Ready Windows node, and the namespace of another user's run.
func plant(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	clustertest.MakeNode(t, c, node("win-1", "windows"))
	_, err := c.Clientset().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "swdt-ability-other", Labels: map[string]string{"app.kubernetes.io/managed-by": "swdt",
			"swdt.dev/run": "01234567-89ab-cdef-0123-456789abcdef"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
