package cluster_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// withUser returns the path of a kubeconfig of a server with one user, in YAML.
func withUser(t *testing.T, server, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
		"clusters: [{name: k, cluster: {server: %q, insecure-skip-tls-verify: true}}]\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"+
		"users: [%s]\n", server, user)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// program writes a program of the shell, and returns its path.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "login")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // it must be runnable
		t.Fatal(err)
	}
	return path
}

func execUser(command, more string) string {
	return fmt.Sprintf("{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: %q, "+
		"interactiveMode: Never%s}}}", command, more)
}

// Each plugin gives no credentials, in ways that people have met. The server must not be asked, nor
// blamed.
func TestACredentialPluginThatGivesNothing(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	reply := func(text string) string { return "echo '" + text + "'" }
	const head = `{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/`
	for name, row := range map[string]struct {
		user    string
		missing bool
		want    string // a part of the message
	}{
		// kubernetes/kubectl#1319
		"not installed": {execUser("login-plugin-not-there", ", installHint: \"install it\\nfrom example.test\""), true,
			"login-plugin-not-there is not installed, so the API server was not asked; install it from example.test"},
		// chrisns/kubectl-passman#129, actions-hub/kubectl#25
		"not installed, without a hint": {execUser("passman", ""), true, "correct users[].user.exec.command"},
		// vmware/pinniped#1451
		"a path of another machine": {execUser("/Users/me/bin/pinniped", ""), true, "/Users/me/bin/pinniped is not installed"},
		"ends":                      {execUser("false", ""), false, "exit code 1"},
		"another exit code":         {execUser(program(t, "exit 3"), ""), false, "exit code 3"},
		"not a program":             {execUser(t.TempDir(), ""), false, "gave no credentials"},
		"text":                      {execUser(program(t, reply("please log in at https://login.example")), ""), false, "gave no credentials"},
		"nothing":                   {execUser("true", ""), false, "gave no credentials"},
		"another version":           {execUser(program(t, reply(head+`v1", "status": {"token": "x"}}`)), ""), false, "version"},
		"no status":                 {execUser(program(t, reply(head+`v1beta1"}`)), ""), false, "status"},
		"no token":                  {execUser(program(t, reply(head+`v1beta1", "status": {}}`)), ""), false, "token"},
		"half a key pair":           {execUser(program(t, reply(head+`v1beta1", "status": {"clientKeyData": "x"}}`)), ""), false, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := cluster.Open(cluster.Options{Kubeconfig: withUser(t, server.URL, row.user)})
			if err != nil {
				t.Fatal(err)
			}
			_, version := c.Version(t.Context())
			_, node := c.Node(t.Context(), "win-1")
			_, clock := c.ClockSkew(t.Context())
			following, err := c.Following()
			if err != nil {
				t.Fatal(err)
			}
			_, err = following.Discovery().ServerVersion()
			for _, err := range []error{version, node, clock, c.Failure("follow", cluster.Permission{}, err)} {
				var got *cluster.CredentialError
				if !errors.As(err, &got) || got.Missing != row.missing || !strings.Contains(err.Error(), row.want) {
					t.Errorf("%T %v", err, err)
				} else if strings.Contains(err.Error(), "\n") {
					t.Errorf("several lines: %q", err.Error())
				}
			}
		})
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the server was asked %d times", n)
	}
}

// A plugin that works is not blamed for a server that does not answer.
func TestACredentialPluginThatWorks(t *testing.T) {
	works := program(t, `echo '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "x"}}'`)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer x" {
			fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
		}
	}))
	defer server.Close()
	c, err := cluster.Open(cluster.Options{Kubeconfig: withUser(t, server.URL, execUser(works, ""))})
	if err != nil {
		t.Fatal(err)
	}
	if version, err := c.Version(t.Context()); err != nil || version != "v1.36.3" {
		t.Errorf("version %s, %v", version, err)
	}
	server.Close()
	var away *cluster.UnreachableError
	if _, err := c.Version(t.Context()); !errors.As(err, &away) {
		t.Errorf("%T %v", err, err)
	}
}

// client-go takes a user that the kubeconfig does not have for an anonymous one, and knows no name of a
// provider that it has removed.
func TestUsersThatCannotBeUsed(t *testing.T) {
	provider := func(name string) string { return "{name: u, user: {auth-provider: {name: " + name + "}}}" }
	for name, row := range map[string]struct{ user, want string }{
		"no user":      {"", `the user "u", which the kubeconfig does not have`},
		"another user": {"{name: U, user: {token: x}}", `the user "u", which the kubeconfig does not have`},
		// aquasecurity/starboard#40, kubernetes/client-go#839, kubernetes/kubernetes#110013
		"gcp": {provider("gcp"), "gke-gcloud-auth-plugin"},
		// ulucinar/kubectl-edit-status#1
		"azure":     {provider("azure"), "kubelogin"},
		"openstack": {provider("openstack"), "client-keystone-auth"},
		"other":     {provider("corp"), "use a credential plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			path := withUser(t, "https://127.0.0.1:1", row.user)
			_, err := cluster.Open(cluster.Options{Kubeconfig: path})
			text, readErr := os.ReadFile(path)
			if readErr != nil {
				t.Fatal(readErr)
			}
			_, parseErr := cluster.Parse(text)
			for _, err := range []error{err, parseErr} {
				var wrong *cluster.ConfigError
				if !errors.As(err, &wrong) || !strings.Contains(err.Error(), row.want) {
					t.Errorf("%T %v", err, err)
				}
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("no file in %v", err)
			}
		})
	}
	for _, user := range []string{"{name: u, user: {}}", "{name: u, user: {token: x}}"} {
		if _, err := cluster.Open(cluster.Options{Kubeconfig: withUser(t, "https://127.0.0.1:1", user)}); err != nil {
			t.Errorf("%s: %v", user, err)
		}
	}
}
