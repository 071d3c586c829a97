package apiserver_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a cluster with an administrator's clients.
type fixture struct {
	*apiserver.Cluster
	config  *rest.Config
	client  *kubernetes.Clientset
	dynamic *dynamic.DynamicClient
	http    *http.Client
}

func start(t *testing.T, o apiserver.Options) *fixture {
	t.Helper()
	c, err := apiserver.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	kubeconfig, err := c.Kubeconfig("")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Cluster: c, config: config}
	f.client, f.dynamic, f.http = clients(t, config)
	return f
}

// clients returns clients with connections of their own: shared ones would outlive the test.
func clients(t *testing.T, config *rest.Config) (*kubernetes.Clientset, *dynamic.DynamicClient, *http.Client) {
	t.Helper()
	transport, err := rest.TransportFor(rest.CopyConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	t.Cleanup(client.CloseIdleConnections)
	typed, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		t.Fatal(err)
	}
	untyped, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		t.Fatal(err)
	}
	return typed, untyped, client
}

// as returns a client that sends a bearer token; without one if token is empty.
func (f *fixture) as(t *testing.T, token string) *kubernetes.Clientset {
	t.Helper()
	config := rest.AnonymousClientConfig(f.config)
	config.BearerToken = token
	client, _, _ := clients(t, config)
	return client
}

func (f *fixture) plant(t *testing.T, manifests string) {
	t.Helper()
	if err := f.Plant(manifests); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

func tokenSecret(id, secret string, expires time.Time) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id, Namespace: "kube-system"},
		Type:       corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			"token-id": []byte(id), "token-secret": []byte(secret),
			"expiration":                     []byte(expires.UTC().Format(time.RFC3339)),
			"usage-bootstrap-authentication": []byte("true"), "usage-bootstrap-signing": []byte("true"),
			"auth-extra-groups": []byte("system:bootstrappers:kubeadm:default-node-token"),
		},
	}
}
