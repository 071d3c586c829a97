package cluster_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ktesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// authority returns a CA certificate, and its hash, computed differently than the product
// does.
func authority(t *testing.T) (certificate []byte, hash string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)},
		&x509.Certificate{}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		fmt.Sprintf("sha256:%x", sha256.Sum256(public))
}

func clusterInfoWith(ca []byte) *corev1.ConfigMap {
	m := clusterInfoObject("abcdef", "012345")
	m.Data["kubeconfig"] = fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "clusters": [
		{"name": "", "cluster": {"server": "https://cp:6443", "certificate-authority-data": "%s"}}]}`,
		base64.StdEncoding.EncodeToString(ca))
	return m
}

func TestClusterInfo(t *testing.T) {
	one, oneHash := authority(t)
	two, twoHash := authority(t)
	c, _ := fakeCluster(clusterInfoWith(append(one, two...)))
	info, err := c.ClusterInfo(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case !info.Exists:
		t.Error("info.Exists = false, want true")
	case info.Server != "https://cp:6443":
		t.Errorf("info.Server = %q, want %q", info.Server, "https://cp:6443")
	case !slices.Equal(info.SignedFor, []string{"012345", "abcdef"}):
		t.Errorf("info.SignedFor = %v, want %v", info.SignedFor, []string{"012345", "abcdef"})
	case !slices.Equal(info.CACertHashes, []string{oneHash, twoHash}):
		t.Errorf("info.CACertHashes = %v, want %v; ClusterInfo = %+v", info.CACertHashes, []string{oneHash, twoHash},
			info)
	}
	none, _ := fakeCluster()
	if info, err := none.ClusterInfo(context.Background()); err != nil || info.Exists {
		t.Errorf("without one: %+v, %v", info, err)
	}
}

func TestCACertHashes(t *testing.T) {
	info, infoHash := authority(t)
	own, ownHash := authority(t)
	ctx := context.Background()
	known := func(config *rest.Config, info *corev1.ConfigMap) *cluster.Cluster {
		server := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
			if info == nil {
				refuse(w, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "cluster-info"))
				return
			}
			answer(w, http.StatusOK, info)
		})
		config.Host = server
		return opened(t, config)
	}
	t.Run("cluster-info's, also where a proxy has another", func(t *testing.T) {
		c := known(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: own}}, clusterInfoWith(info))
		if got, err := c.CACertHashes(ctx); err != nil || !slices.Equal(got, []string{infoHash}) {
			t.Errorf("hashes %v, %v; wanted %s", got, err, infoHash)
		}
	})
	t.Run("the kubeconfig's", func(t *testing.T) {
		c := known(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: own}}, nil)
		if got, err := c.CACertHashes(ctx); err != nil || !slices.Equal(got, []string{ownHash}) {
			t.Errorf("hashes %v, %v; wanted %s", got, err, ownHash)
		}
	})
	t.Run("nowhere", func(t *testing.T) {
		_, err := known(&rest.Config{}, nil).CACertHashes(ctx)
		var config *cluster.ConfigError
		if !errors.As(err, &config) {
			t.Errorf("error %v", err)
		}
	})
}

// kubeadm reads cluster-info before it has any credentials.
func TestClusterInfoWithoutCredentials(t *testing.T) {
	for name, open := range map[string]bool{"may be read": true, "is closed": false} {
		t.Run(name, func(t *testing.T) {
			server := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "" && !open {
					refuse(w, apierrors.NewUnauthorized("who?"))
					return
				}
				answer(w, http.StatusOK, clusterInfoObject())
			})
			c := opened(t, &rest.Config{Host: server, BearerToken: "t"})
			if info, err := c.ClusterInfo(context.Background()); err != nil || info.Anonymous != open {
				t.Errorf("ClusterInfo = %+v, %v", info, err)
			}
		})
	}
}

func TestKubeletConfig(t *testing.T) {
	c, _ := fakeCluster(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system",
		Name: "kubelet-config"},
		Data: map[string]string{"kubelet": "kind: KubeletConfiguration\n"}})
	got, err := c.KubeletConfig(context.Background())
	if err != nil || got != (cluster.KubeletConfig{Exists: true, Content: "kind: KubeletConfiguration\n"}) {
		t.Errorf("KubeletConfig = %+v, %v", got, err)
	}
	none, _ := fakeCluster()
	if got, err := none.KubeletConfig(context.Background()); err != nil || got.Exists {
		t.Errorf("without one: %+v, %v", got, err)
	}
}

func TestMissing(t *testing.T) {
	c, client := fakeCluster()
	client.PrependReactor("create", "selfsubjectaccessreviews", func(a ktesting.Action) (bool, runtime.Object, error) {
		review := a.(ktesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		asked := review.Spec.ResourceAttributes
		review.Status.Allowed = asked.Resource != "secrets" && asked.Subresource != "eviction"
		return true, review, nil
	})
	missing, err := c.Missing(context.Background(), append(cluster.JoinNeeds(), cluster.DrainNeeds()...))
	if err != nil {
		t.Fatal(err)
	}
	var printed []string
	for _, p := range missing {
		printed = append(printed, p.String())
	}
	want := []string{"create secrets -n kube-system", "list secrets -n kube-system", "delete secrets -n kube-system",
		"create pods --subresource=eviction"}
	if !slices.Equal(printed, want) {
		t.Errorf("missing %q, wanted %q", printed, want)
	}
}

func TestPermissionIsWhatKubectlTakes(t *testing.T) {
	for want, p := range map[string]cluster.Permission{
		"get /version": {Verb: "get", Resource: "/version"},
		"list poddisruptionbudgets.policy -n default": {Verb: "list", Group: "policy",
			Resource: "poddisruptionbudgets", Namespace: "default"},
		"patch nodes/win-1": {Verb: "patch", Resource: "nodes", Name: "win-1"},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, wanted %q", got, want)
		}
	}
}

// Errors are printed and logged, so none may contain a secret of the kubeconfig.
func TestErrorsKeepTheKubeconfigsSecrets(t *testing.T) {
	var printed bytes.Buffer
	server := serveHTTP(t,
		func(w http.ResponseWriter, _ *http.Request) { refuse(w, apierrors.NewUnauthorized("who?")) })
	for _, host := range []string{server, "http://127.0.0.1:1"} {
		c := opened(t, &rest.Config{Host: host, Username: "me", Password: "t0p-s3cret"})
		_, err := c.Node(context.Background(), "n")
		_, clock := c.ClockSkew(context.Background())
		_, info := c.ClusterInfo(context.Background())
		fmt.Fprintf(&printed, "%v %+v %v %v", err, err, clock, info)
	}
	if strings.Contains(printed.String(), "t0p-s3cret") {
		t.Errorf("printed %s", printed.String())
	}
}
