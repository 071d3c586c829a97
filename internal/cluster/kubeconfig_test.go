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
	"github.com/swdt-dev/swdt/internal/format/windowstext"
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

// kubectl reads UTF-16 with a mark: PowerShell 5.1 writes it for kubectl config view --raw > FILE.
func TestKubeconfigOfWindowsTools(t *testing.T) {
	utf16 := func(encoding windowstext.Encoding) string {
		return string(windowstext.Text{Encoding: encoding}.Encode(twoContexts))
	}
	for name, c := range map[string]struct {
		content string
		names   string // in the error; "": there is none
	}{
		"UTF-16":                          {utf16(windowstext.UTF16LE), ""},
		"UTF-16, big-endian":              {utf16(windowstext.UTF16BE), ""},
		"UTF-8 with a mark":               {"\ufeff" + twoContexts, ""},
		"CR LF":                           {strings.ReplaceAll(twoContexts, "\n", "\r\n"), ""},
		"CR CR LF":                        {strings.ReplaceAll(twoContexts, "\n", "\r\r\n"), ""},
		"UTF-16 without a mark":           {utf16(windowstext.UnmarkedUTF16LE), "UTF-16 (little-endian) without"},
		"NUL tail":                        {twoContexts + "\x00\x00", "NUL"},
		"NULs (kubernetes/minikube#8195)": {"\x00\x00\x00\x00", "NUL"},
		"a code page":                     {"# B\xfcro\n" + twoContexts, "line 1"},
		"base64 that was not text (actions-hub/kubectl#22)": {"\xdf\x9e\xfa", "0xfa"},
	} {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := cluster.Open(cluster.Options{Kubeconfig: path, Context: "a"})
		switch {
		case c.names == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.names != "" && (err == nil || !strings.Contains(err.Error(), c.names)):
			t.Errorf("%s: the error does not name %q: %v", name, c.names, err)
		}
	}
}
