package existing_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/existing"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// document writes a cluster's document and loads it. The kubeconfig is beside the file.
func document(t *testing.T, folder, fields, network string) config.ClusterDocument {
	t.Helper()
	path := filepath.Join(folder, "cluster.yaml")
	text := "apiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n" +
		"  controlPlane:\n    existing: {" + fields + "}\n  network: {" + network + "}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, err := config.LoadCluster([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func serve(t *testing.T, folder string) *apiserver.Cluster {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	if err := server.WriteKubeconfig(filepath.Join(folder, "admin.conf")); err != nil {
		t.Fatal(err)
	}
	return server
}

func open(t *testing.T, doc config.ClusterDocument) *cluster.Cluster {
	t.Helper()
	api, err := existing.Open(doc)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// The path of the kubeconfig is relative to the document. Without one, kubectl's rules apply.
func TestVersionOfTheDocumentsCluster(t *testing.T) {
	folder := t.TempDir()
	server := serve(t, folder)
	t.Setenv("KUBECONFIG", filepath.Join(folder, "admin.conf"))
	for _, fields := range []string{"kubeconfig: admin.conf", ""} {
		doc := document(t, folder, fields, "")
		version, err := existing.Version(t.Context(), doc, open(t, doc))
		if err != nil || version != apiserver.DefaultVersion {
			t.Errorf("%q: %s, %v", fields, version, err)
		}
		found, err := existing.Kubeconfig(doc)
		if err != nil || !strings.Contains(string(found), "server: "+server.Server()) {
			t.Errorf("%q: the kubeconfig is not of %s: %v\n%s", fields, server.Server(), err, found)
		}
	}
}

func TestKubeconfigsThatSelectNoCluster(t *testing.T) {
	folder := t.TempDir()
	serve(t, folder)
	t.Setenv("KUBECONFIG", filepath.Join(folder, "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // in a pod, that would be a cluster
	remedy := "; write the path of the cluster's kubeconfig, and the name of a context in it"
	path := func(name string) string { return filepath.Join(folder, name) }
	for fields, want := range map[string]string{
		"kubeconfig: none":                     path("none") + ": there is no such file",
		"":                                     path("none") + ": there is no such file",
		"kubeconfig: admin.conf, context: big": path("admin.conf") + `, context "big": there is no context "big"; the contexts are simulated`,
		"kubeconfig: cluster.yaml":             path("cluster.yaml") + ": " + path("cluster.yaml") + " is no kubeconfig",
	} {
		doc := document(t, folder, fields, "")
		_, err := existing.Open(doc)
		_, same := existing.Kubeconfig(doc)
		for _, err := range []error{err, same} {
			var wrong *config.Error
			if !errors.As(err, &wrong) {
				t.Errorf("%q: got %v, want a config.Error", fields, err)
				continue
			}
			want := path("cluster.yaml") + ":6: spec.controlPlane.existing: selects no cluster in " + want + remedy
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("%q (-want +got):\n%s", fields, diff)
			}
		}
	}
}

// An API server that does not answer, and one that refuses the user, are unusable.
func TestUnusableAPIServers(t *testing.T) {
	folder := t.TempDir()
	server := serve(t, folder)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	write := func(name, address, user string) {
		text := "apiVersion: v1\nkind: Config\ncurrent-context: x\n" +
			"clusters: [{name: x, cluster: {server: '" + address + "', insecure-skip-tls-verify: true}}]\n" +
			"contexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {" + user + "}}]\n"
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("closed", closed.URL, "")
	write("token", server.Server(), "token: abcdef.0123456789abcdef")
	write("anonymous", server.Server(), "")
	write("exec", server.Server(),
		"exec: {apiVersion: client.authentication.k8s.io/v1, command: /nowhere/sign-in, interactiveMode: Never}")
	var (
		unreachable  *cluster.UnreachableError
		unauthorized *cluster.UnauthorizedError
		forbidden    *cluster.ForbiddenError
		credential   *cluster.CredentialError
	)
	for name, want := range map[string]any{
		"closed": &unreachable, "token": &unauthorized, "anonymous": &forbidden, "exec": &credential,
	} {
		doc := document(t, folder, "kubeconfig: "+name, "")
		_, err := existing.Version(t.Context(), doc, open(t, doc))
		var unusable *existing.UnusableError
		if !errors.As(err, &unusable) || !errors.As(err, want) {
			t.Errorf("%s: got %v, want an UnusableError of %T", name, err, want)
			continue
		}
		begin := "use the existing cluster prod (spec.controlPlane.existing in " + doc.File + ":6): "
		if !strings.HasPrefix(err.Error(), begin) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSubnetsOfTheDocumentAreThoseOfTheCluster(t *testing.T) {
	folder := t.TempDir()
	serve(t, folder) // pods 192.168.0.0/16, Services 10.96.0.0/12
	remedy := "leave the field out: swdt reads these addresses from the cluster"
	for network, want := range map[string][]string{
		"": nil,
		"podSubnet: 192.168.0.0/16, serviceSubnet: 10.96.0.0/12": nil,
		"podSubnet: 10.244.0.0/16": {
			"podSubnet: is 10.244.0.0/16, but the addresses of the existing cluster's pods are 192.168.0.0/16; " + remedy,
		},
		"podSubnet: 10.244.0.0/16, serviceSubnet: 10.97.0.0/16": {
			"podSubnet: is 10.244.0.0/16, but the addresses of the existing cluster's pods are 192.168.0.0/16; " + remedy,
			"serviceSubnet: is 10.97.0.0/16, but the addresses of the existing cluster's Services are 10.96.0.0/12; " + remedy,
		},
	} {
		doc := document(t, folder, "kubeconfig: admin.conf", network)
		err := existing.CheckSubnets(t.Context(), doc, open(t, doc))
		var got []string
		var wrong *config.Error
		if errors.As(err, &wrong) {
			for _, problem := range wrong.Problems {
				if problem.Line != 7 {
					t.Errorf("%q: line %d", network, problem.Line)
				}
				got = append(got, strings.TrimPrefix(problem.Field, "spec.network.")+": "+problem.What+"; "+problem.Remedy)
			}
		} else if err != nil {
			t.Errorf("%q: %v", network, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", network, diff)
		}
	}
}
