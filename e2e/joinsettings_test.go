//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestProxyAndRootCertificates sets, changes and removes the proxy of a node and a private certification authority. The
// real containerd verifies a registry by the machine's store, and is restarted once for each change. Wine's Service
// Control Manager does not read the variables of a service, so what the process has of the proxy is only seen on the
// simulated Windows (internal/join, TestTheProxyIsSetChangedAndRemoved).
func TestProxyAndRootCertificates(t *testing.T) {
	c := clusterSandbox(t)
	server := opensshFor(t, c.sandboxInfo)
	registry, authority := privateRegistry(t)
	file := func(lines string) string {
		return c.joinFile(t, server.credentials(), joinWith{more: "    join: {nodeName: wine-1}\n" + lines})
	}
	before := machineOf(t, c.sandboxInfo, file(""))
	ok(t, "join", "-c", file(""), "--kubeconfig", c.Kubeconfig, "--allow-reboot")

	const proxy = `HKLM\SYSTEM\CurrentControlSet\Services\containerd`
	variables := func(file string) string {
		return swdt(t, "exec", "-c", file, "--", "reg", "query", proxy, "/v", "Environment").stdout
	}
	for _, step := range []struct {
		name, lines string
		proxy       string // "": none
		trusts      bool
	}{
		{"without", "", "", false},
		{"set", "    proxy: {https: http://proxy.example:3128}\n    certificateAuthorities: [" + authority + "]\n",
			"HTTPS_PROXY=http://proxy.example:3128", true},
		{"changed", "    proxy: {https: http://other.example:3128}\n    certificateAuthorities: [" + authority + "]\n",
			"HTTPS_PROXY=http://other.example:3128", true},
		{"removed", "", "", false},
	} {
		starts := c.containerdStarts(t)
		config := file(step.lines)
		steps := decoded[stepsReport](t, ok(t, "join", "-c", config, "--kubeconfig", c.Kubeconfig, "-o", "json"))
		t.Logf("%s: %v", step.name, steps.changed())
		if is := variables(config); strings.Contains(is, "_PROXY") != (step.proxy != "") || !strings.Contains(is, step.proxy) {
			t.Errorf("%s: the service's variables are %s", step.name, is)
		}
		if started := c.containerdStarts(t) - starts; (started != 0) != (step.name != "without") || started > 1 {
			t.Errorf("%s: containerd was started %d times", step.name, started)
		}
		err := c.pull(t, config, registry+"/none:1")
		if unknown := strings.Contains(err.Error(), "signed by unknown authority"); unknown == step.trusts {
			t.Errorf("%s: a pull from the private registry: %v", step.name, err)
		}
	}
	ok(t, "join", "-c", file("    certificateAuthorities: ["+authority+"]\n"), "--kubeconfig", c.Kubeconfig)
	ok(t, "reset", "--yes", "-c", file(""), "--kubeconfig", c.Kubeconfig, "--delete-node")
	before.expectSame(t, machineOf(t, c.sandboxInfo, file("")))
	if roots := swdt(t, "exec", "-c", file(""), "--", "reg", "query",
		`HKLM\SOFTWARE\Microsoft\SystemCertificates\ROOT\Certificates`, "/s"); roots.code == 0 && strings.Contains(roots.stdout, "swdt-e2e") {
		t.Errorf("a root certificate is left: %s", roots.stdout)
	}
}

// pull asks the node's containerd for an image that the registry does not have, and returns the error.
func (c cluster) pull(t *testing.T, config, image string) error {
	t.Helper()
	p := startProxy(t, config)
	conn, err := grpc.NewClient(p.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	_, err = runtimev1.NewImageServiceClient(conn).PullImage(ctx, &runtimev1.PullImageRequest{Image: &runtimev1.ImageSpec{Image: image}})
	if err == nil {
		t.Fatalf("%s was pulled", image)
	}
	return err
}

// privateRegistry serves an empty registry with a certificate of a new authority. It returns the registry's host and port,
// and the path of the authority's certificate. The host is this computer's name: containerd verifies no loopback address.
func privateRegistry(t *testing.T) (host, authority string) {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(template *x509.Certificate, parent *x509.Certificate) []byte {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
		certificate, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return certificate
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "swdt-e2e"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	root := issue(ca, ca)
	leaf := issue(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, ca)

	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Listener.Close()
	server.Listener = listener
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)

	authority = filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return net.JoinHostPort(name, port), authority
}
