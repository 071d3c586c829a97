package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/testing/goldentest"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
	"github.com/swdt-dev/swdt/internal/ui"
)

// kubeconfigOf returns a kubeconfig of a server that lists these Services.
func kubeconfigOf(t *testing.T, services ...corev1.Service) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = metav1.List{TypeMeta: metav1.TypeMeta{Kind: "List", APIVersion: "v1"}}
		if strings.HasSuffix(r.URL.Path, "/services") {
			answer = corev1.ServiceList{TypeMeta: metav1.TypeMeta{Kind: "ServiceList", APIVersion: "v1"},
				Items: services}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: %q}}]
contexts: [{name: here, context: {cluster: here, user: me}}]
users: [{name: me, user: {}}]
`, server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func service(namespace, name string) corev1.Service {
	return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestServicesAreCompleted(t *testing.T) {
	workdir.Change(t, t.TempDir())
	kubeconfig := kubeconfigOf(t, service("shop", "web10"), service("shop", "web2"), service("default", "kubernetes"),
		service("shop", "e\x1b[2Jvil"))
	for toComplete, want := range map[string][]string{
		"":           {"default/kubernetes", "shop/web2", "shop/web10"},
		"shop/":      {"shop/web2", "shop/web10"},
		"shop/web2,": {"shop/web2,default/kubernetes", "shop/web2,shop/web10"},
		"none":       nil,
	} {
		var out, story bytes.Buffer
		code := cli.Run(t.Context(), ui.Streams{Out: &out, Err: &story},
			[]string{"__complete", "capture", "--kubeconfig", kubeconfig, "--service", toComplete},
			cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if got := lines[:len(lines)-1]; code != 0 || !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%q: %d, got %q, want %q; %s", toComplete, code, got, want, story.String())
		}
	}
}

// TestCompletionScriptOfPowerShell keeps the script, so that a check of all .ps1 files reads it.
func TestCompletionScriptOfPowerShell(t *testing.T) {
	var out, errs bytes.Buffer
	if code := cli.Run(t.Context(), ui.Streams{Out: &out, Err: &errs}, []string{"completion", "powershell"},
		cli.Environment{}); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	goldentest.Check(t, "completion.ps1", out.String())
}
