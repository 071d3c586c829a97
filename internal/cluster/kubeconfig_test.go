package cluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/swdt-dev/swdt/internal/cluster"
)

func TestKubeconfigKeepsOneContext(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "config")
	text := strings.Replace(twoContexts, "user: {token: t0p-s3cret}",
		"user: {client-certificate: crt, client-key: key, exec: {apiVersion: client.authentication.k8s.io/v1, "+
			"command: ./sign-in, interactiveMode: Never}}", 1)
	for name, content := range map[string]string{"config": text, "crt": "certificate", "key": "secret key"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mark := filepath.Join(folder, "ran")
	program := "#!/bin/sh\ntouch " + mark + "\n"
	err := os.WriteFile(filepath.Join(folder, "sign-in"), []byte(program), 0o700) //nolint:gosec // it must be runnable
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ selected, context, server string }{
		{"", "a", "https://one.example:6443"}, {"b", "b", "https://two.example"},
	} {
		o := cluster.Options{Kubeconfig: path, Context: c.selected}
		name, err := cluster.ContextName(o)
		if err != nil || name != c.context {
			t.Errorf("context %s, %v", name, err)
		}
		found, err := cluster.Kubeconfig(o)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.Load(found)
		if err != nil {
			t.Fatal(err)
		}
		access, err := clientcmd.RESTConfigFromKubeConfig(found)
		if err != nil || access.Host != c.server || config.CurrentContext != c.context {
			t.Errorf("context %s of %v, %v", config.CurrentContext, access, err)
		}
		if len(config.Contexts) != 1 || len(config.Clusters) != 1 {
			t.Errorf("more than one context or cluster: %+v", config)
		}
		user := config.AuthInfos["me"]
		got := clientcmdapi.AuthInfo{
			ClientCertificateData: user.ClientCertificateData, ClientKeyData: user.ClientKeyData,
			Exec: &clientcmdapi.ExecConfig{Command: user.Exec.Command},
		}
		whole := clientcmdapi.AuthInfo{
			ClientCertificateData: []byte("certificate"), ClientKeyData: []byte("secret key"),
			Exec: &clientcmdapi.ExecConfig{Command: filepath.Join(folder, "sign-in")},
		}
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Errorf("the user (-want +got):\n%s", diff)
		}
	}
	if _, err := os.Stat(mark); !os.IsNotExist(err) {
		t.Errorf("the program that signs in was run: %v", err)
	}
}

func TestKubeconfigWithoutTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(twoContexts), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []cluster.Options{{Kubeconfig: path, Context: "c"}, {Kubeconfig: path + "x"}} {
		_, err := cluster.Kubeconfig(o)
		var wrong *cluster.ConfigError
		if !errors.As(err, &wrong) {
			t.Errorf("%+v: got %v, want a ConfigError", o, err)
		}
	}
}
