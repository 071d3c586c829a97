package cli_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/cluster"
	cluster_simulated "github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/ui"
)

// clusterOf returns the kubeconfig of a cluster with a Windows node, and a pod there for
// which the kubelet reports the CPU usage in reports, or the real one if that is empty.
func clusterOf(t *testing.T, reports string) (kubeconfig string) {
	t.Helper()
	control, err := cluster_simulated.Start(cluster_simulated.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(control.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := control.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	opened, err := cluster.Open(cluster.Options{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	client := opened.Clientset().CoreV1()
	_, err = client.Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "win1", Labels: map[string]string{corev1.LabelOSStable: "windows"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"simulated.swdt.dev/burns": "0.4"}
	if reports != "" {
		labels["simulated.swdt.dev/reports"] = reports
	}
	pod, err := client.Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "burner", Labels: labels},
		Spec:       corev1.PodSpec{NodeName: "win1", Containers: []corev1.Container{{Name: "burn", Image: "example"}}},
	}, metav1.CreateOptions{})
	if err == nil {
		pod.Status.Phase = corev1.PodRunning
		_, err = client.Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// The kubelet's summary through the API server works alone, without SSH and node file.
func TestStatsOfTheSummaryAlone(t *testing.T) {
	for _, c := range []struct {
		reports string
		code    int
		want    string
	}{
		{"", 0, "reported 0.40"},
		{"absent", 5, "missing"},
	} {
		var out, story bytes.Buffer
		code := cli.Run(context.Background(), ui.Streams{Out: &out, Err: &story}, []string{
			"stats", "watch", "--source", "summary", "--kubeconfig", clusterOf(t, c.reports),
			"--interval", "50ms", "--for", "500ms", "--fail-on", "missing",
		}, cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
		text := strings.Join(strings.Fields(out.String()), " ")
		switch {
		case code != c.code:
			t.Errorf("code = %v, want %v", code, c.code)
		case !strings.Contains(text, "default/burner/burn"):
			t.Errorf("text lacks %q:\n%s", "default/burner/burn", text)
		case !strings.Contains(text, c.want):
			t.Errorf("text lacks %q:\n%s; reports %q: exit code %d\n%s\n%s", c.want, text, c.reports, code, &out,
				&story)
		}
		if !strings.Contains(story.String(), "read only through the API server") {
			t.Errorf("what is not known is not said: %s", &story)
		}
	}
}

// A check that could not watch for the whole requested time has not passed.
func TestAWatchThatIsCutShort(t *testing.T) {
	for _, c := range []struct {
		flags []string
		code  int
	}{
		{[]string{"--for", "1h", "--timeout", "300ms", "--fail-on", "zero"}, 1},
		{[]string{"--for", "300ms", "--timeout", "1h", "--fail-on", "missing"}, 0},
		{[]string{"--timeout", "2s"}, 0}, // no duration was requested
	} {
		var out, story bytes.Buffer
		code := cli.Run(context.Background(), ui.Streams{Out: &out, Err: &story}, append([]string{
			"stats", "watch", "--source", "summary", "--kubeconfig", clusterOf(t, "0.4"), "--interval", "50ms",
		}, c.flags...), cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
		if code != c.code || strings.Contains(story.String(), "--timeout") != (code == 1) {
			t.Errorf("%q: exit code %d\n%s\n%s", c.flags, code, &out, &story)
		}
	}
}
