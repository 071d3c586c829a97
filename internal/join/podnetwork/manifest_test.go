package podnetwork_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/ui"
)

const attack = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: attacker}\n" +
	"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
	"subjects: [{kind: User, name: attacker}]\n"

// A server on the way to the manifest, a mirror or a broken file cannot make swdt apply something: each
// installation ends before it changes the cluster.
func TestAManifestThatIsNotVerifiedIsNotApplied(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte(attack)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "attack.yaml")
	if err := os.WriteFile(file, []byte(attack), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(attack))
	right, wrong := hex.EncodeToString(sum[:]), strings.Repeat("0", 64)

	var (
		mismatch   *podnetwork.MismatchError
		unverified *podnetwork.UnverifiedError
		manifest   *cni.ManifestError
	)
	for name, test := range map[string]struct {
		change func(*podnetwork.Options)
		want   any
	}{
		"a mirror's other content": {func(o *podnetwork.Options) { o.Mirror = server.URL }, &mismatch},
		"a version without a hash": {func(o *podnetwork.Options) {
			o.Version, o.Mirror = "v9.9.9", server.URL
		}, &unverified},
		"a version with another hash": {func(o *podnetwork.Options) {
			o.Version, o.Mirror, o.SHA256, o.CRDSHA256 = "v9.9.9", server.URL, wrong, wrong
		}, &mismatch},
		"a URL without a hash": {func(o *podnetwork.Options) {
			o.Manifests = []podnetwork.Manifest{{Source: server.URL + "/m.yaml"}}
		}, &unverified},
		"a URL with another hash": {func(o *podnetwork.Options) {
			o.Manifests = []podnetwork.Manifest{{Source: server.URL + "/m.yaml", SHA256: wrong}}
		}, &mismatch},
		"a file with another hash": {func(o *podnetwork.Options) {
			o.Manifests = []podnetwork.Manifest{{Source: file, SHA256: strings.ToUpper(wrong)}}
		}, &mismatch},
		"another program, with its hash": {func(o *podnetwork.Options) {
			o.Manifests = []podnetwork.Manifest{{Source: server.URL + "/m.yaml", SHA256: strings.ToUpper(right)}}
		}, &manifest},
	} {
		t.Run(name, func(t *testing.T) {
			c := inMemory(t)
			o := podnetwork.Options{Settings: cni.Settings{Network: cni.Calico, PodCIDR: "10.244.0.0/16",
				ServiceCIDRs: []string{"10.96.0.0/12"}, APIServer: "10.0.0.1:6443"}, Store: artifact.Options{Cache: t.TempDir()}}
			test.change(&o)
			report, err := podnetwork.Install(t.Context(), c, o, ui.Discard{})
			if !errors.As(err, test.want) || report.Result != "failed" || len(report.Steps) > 0 {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}

// inMemory returns an API server in memory.
func inMemory(t *testing.T) *cluster.Cluster {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	kubeconfig, err := server.Kubeconfig("")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "admin.conf")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(cluster.Options{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
