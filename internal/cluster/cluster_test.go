package cluster_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// fakeCluster returns a Cluster of client-go's fakes with these objects.
func fakeCluster(objects ...runtime.Object) (*cluster.Cluster, *fake.Clientset) {
	client := fake.NewClientset(objects...)
	return cluster.FromClients("https://fake:6443", client, noCustom()), client
}

// customLists returns the kinds of custom resources that the package requests.
func customLists() map[schema.GroupVersionResource]string {
	return map[schema.GroupVersionResource]string{
		{Group: "operator.tigera.io", Version: "v1", Resource: "installations"}:     "InstallationList",
		{Group: "crd.projectcalico.org", Version: "v1", Resource: "ippools"}:        "IPPoolList",
		{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamconfigs"}:    "IPAMConfigList",
		{Group: "projectcalico.org", Version: "v3", Resource: "ipamconfigurations"}: "IPAMConfigurationList",
	}
}

func noCustom() *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), customLists())
}

func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-" + "1"}}
	for _, c := range change {
		c(n)
	}
	return n
}

const twoContexts = `apiVersion: v1
kind: Config
current-context: a
clusters:
- {name: one, cluster: {server: "https://one.example:6443"}}
- {name: two, cluster: {server: "https://two.example"}}
users:
- {name: me, user: {token: t0p-s3cret}}
contexts:
- {name: a, context: {cluster: one, user: me}}
- {name: b, context: {cluster: two, user: me}}
`

func TestOpenFollowsKubectl(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	both := write("both", twoContexts)
	elsewhere := write("elsewhere", strings.ReplaceAll(strings.ReplaceAll(twoContexts, "current-context: a", ""),
		"one", "three"))
	onlyCurrent := write("current", "apiVersion: v1\nkind: Config\ncurrent-context: b\n")
	noCurrent := write("no-current", strings.Replace(twoContexts, "current-context: a", "", 1))
	broken := write("broken", "clusters: [")
	oidc := write("oidc", strings.Replace(twoContexts, "token: t0p-s3cret",
		"auth-provider: {name: oidc, config: {idp-issuer-url: 'https://idp.example', client-id: me}}", 1))
	home := filepath.Join(dir, "home")
	t.Setenv("HOME", home)
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // if this test runs in a pod, that would be another way to a cluster

	for name, test := range map[string]struct {
		environment    string
		options        cluster.Options
		server, target string
		fails          bool
		says           string // part of the error
	}{
		"a file": {options: cluster.Options{Kubeconfig: both},
			server: "https://one.example:6443", target: "one.example:6443"},
		"a context": {options: cluster.Options{Kubeconfig: both, Context: "b"},
			server: "https://two.example", target: "two.example:443"},
		"the environment": {environment: both, server: "https://one.example:6443",
			target: "one.example:6443"},
		"files merged, the first wins": {environment: onlyCurrent + string(os.PathListSeparator) + both,
			server: "https://two.example", target: "two.example:443"},
		"a file goes before the variable": {environment: elsewhere, options: cluster.Options{Kubeconfig: both},
			server: "https://one.example:6443", target: "one.example:6443"},
		"no such context": {options: cluster.Options{Kubeconfig: both, Context: "c"}, fails: true,
			says: `there is no context "c"; the contexts are a, b`},
		"no current context": {options: cluster.Options{Kubeconfig: noCurrent}, fails: true,
			says: "there is no current context; the contexts are a, b"},
		"no such file": {options: cluster.Options{Kubeconfig: filepath.Join(dir, "none")},
			fails: true},
		"a provider of credentials": {options: cluster.Options{Kubeconfig: oidc},
			server: "https://one.example:6443", target: "one.example:6443"},
		"a broken file":  {options: cluster.Options{Kubeconfig: broken}, fails: true},
		"nothing at all": {fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.environment)
			c, err := cluster.Open(test.options)
			if test.fails {
				var config *cluster.ConfigError
				if !errors.As(err, &config) || !strings.Contains(err.Error(), "--kubeconfig") {
					t.Fatalf("Open = %v, wanted a ConfigError with its remedy", err)
				}
				if !strings.Contains(err.Error(), test.says) {
					t.Errorf("the error %q does not say %q", err, test.says)
				}
				if strings.Contains(err.Error(), "t0p-s3cret") {
					t.Errorf("the error tells the token: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Server() != test.server || c.Endpoint() != test.target {
				t.Errorf("server %s, endpoint %s; wanted %s, %s", c.Server(), c.Endpoint(), test.server, test.target)
			}
		})
	}
}

func TestEndpointOfIPv6(t *testing.T) {
	for server, want := range map[string]string{
		"https://[fd00::1]:6443": "[fd00::1]:6443", "https://[fd00::1]": "[fd00::1]:443", "http://h": "h:80",
		"10.0.0.1:6443": "10.0.0.1:6443",
	} {
		if got := cluster.FromClients(server, nil, nil).Endpoint(); got != want {
			t.Errorf("endpoint of %s = %s, wanted %s", server, got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	c, _ := fakeCluster()
	got, err := c.Version(context.Background())
	if err != nil || !strings.HasPrefix(got, "v") {
		t.Errorf("Version = %q, %v", got, err)
	}
}
