package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/cluster"
	cluster_simulated "github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/testing/registrytest"
	"github.com/swdt-dev/swdt/internal/ui"
)

// The check of an image on no node is no success: it has looked at nothing.
func TestImageCheckWithoutWindowsNodes(t *testing.T) {
	control, err := cluster_simulated.Start(cluster_simulated.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(control.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := control.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	served := registrytest.Start(t)
	served.PutIndex(t, "team/app", "1", []registrytest.Manifest{
		{Platform: json.RawMessage(`{"os":"windows","architecture":"amd64","os.version":"10.0.20348.1006"}`)}})
	image := served.Host + "/team/app"
	t.Setenv("KUBECONFIG", "")
	check := func(code int, want string, args ...string) {
		t.Helper()
		var out, story bytes.Buffer
		got := cli.Run(t.Context(), ui.Streams{Out: &out, Err: &story}, append([]string{"image"}, args...),
			cli.Environment{Agent: agent, Getenv: os.Getenv})
		if got != code || !strings.Contains(story.String(), want) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", args, got, code, want, &out, &story)
		}
	}
	const none = "the cluster has no Windows node: add one with `swdt join"
	check(1, none, "check", image+":1", "--kubeconfig", kubeconfig)
	check(1, none, "list", image, "--kubeconfig", kubeconfig)
	check(1, none, "check", "--kubeconfig", kubeconfig)
	t.Setenv("KUBECONFIG", kubeconfig)
	check(1, none, "check", image+":1")
	check(2, "there is no image to check: no object of the cluster has pods for Windows: name images",
		"check", "--windows", "ltsc2022")

	opened, err := cluster.Open(cluster.Options{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	_, err = opened.Clientset().CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "win1", Labels: map[string]string{corev1.LabelOSStable: "windows"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check(0, "", "check", image+":1")
	check(2, `no Windows node of the cluster has the labels "pool=a"`, "check", image+":1", "-l", "pool=a")
	check(2, `none of the Windows nodes win1 has the labels "pool=a"`, "check", image+":1", "-l", "pool=a", "-n", "win1")

	t.Setenv("KUBECONFIG", "")
	const alone = "-n and -l choose nodes of a cluster: name it with --kubeconfig, and no --windows"
	check(2, alone, "check", image+":1", "-n", "win1")
	check(2, alone, "check", image+":1", "-l", "pool=a", "--windows", "ltsc2022")
	check(2, alone, "list", image, "-l", "pool=a")
	check(2, "there is no image to check: the manifests have no pods for Windows with an image",
		"check", "-f", t.TempDir(), "--windows", "ltsc2022")
}

// A registry that does not send all tags is reported.
func TestImageListWithoutAllTags(t *testing.T) {
	served := registrytest.Start(t)
	served.Intercept(func(w http.ResponseWriter, request *http.Request, _ http.Handler) bool {
		if !strings.HasSuffix(request.URL.Path, "/tags/list") {
			return false
		}
		w.Header().Set("Link", `</v2/team/app/tags/list?next=x>; rel="next"`)
		_, _ = fmt.Fprint(w, `{"tags":["1"]}`)
		return true
	})
	var out, story bytes.Buffer
	code := cli.Run(t.Context(), ui.Streams{Out: &out, Err: &story}, []string{"image", "list", served.Host + "/team/app", "--grep", "2"},
		cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
	if want := "the registry has more tags than the 1 that swdt could read"; code != 1 || !strings.Contains(story.String(), want) {
		t.Errorf("exit code %d, want 1 and %q\n%s", code, want, &story)
	}
}
