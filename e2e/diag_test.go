//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiag makes a bundle of a Wine node with the real agent. The bundle has a reason for each part
// that Wine lacks, no collector hangs, and secrets stay on the node.
func TestDiag(t *testing.T) {
	t.Parallel()
	info := wineSandbox(t)
	const secret = "hunter2-hunter2"
	put := func(path, text string) {
		t.Helper()
		full := filepath.Join(info.Prefix, "drive_c", filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("etc/kubernetes/kubelet.conf", "users:\n- user:\n    token: "+secret+"\n    name: ordinary\n")
	put("var/log/kubelet/kubelet.log", "I1120 14:29:59.1 1 x.go:1] Authorization: Bearer "+secret+
		"\nI1120 14:29:59.2 1 x.go:1] ordinary\n")
	ok(t, "exec", "-c", info.Config, "--", "reg", "add", `HKLM\SYSTEM\CurrentControlSet\Services\kubelet\Parameters`,
		"/v", "ApiToken", "/d", secret)

	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	ok(t, "diag", "-c", info.Config, "--profile", "full", "-w", file)
	bundle := decoded[struct {
		Nodes []struct {
			Name, Result, Error string
			Collectors          []struct{ Name, Result, Error string }
		}
	}](t, ok(t, "diag", "show", file, "-o", "json"))
	node := bundle.Nodes[0]
	results := map[string]string{}
	for _, c := range node.Collectors {
		results[c.Name] = c.Result
		if c.Result != "done" && c.Error == "" {
			t.Errorf("%s is %s, and nothing says why", c.Name, c.Result)
		}
		if c.Result == "late" {
			t.Errorf("%s: c.Result is %q, want anything but %q", c.Name, c.Result, "late")
		}
	}
	for name, want := range map[string]string{
		"machine": "done", "services": "done", "registry": "done", "configuration": "done", "logs": "done",
		"environment": "done", "processes": "done",
		"runtime": "absent", "vfp": "absent", "hnsdiag": "absent",
	} {
		if results[name] != want {
			t.Errorf("%s is %q, want %s", name, results[name], want)
		}
	}
	if services := ok(t, "diag", "show", file, node.Name, "services").stdout; !strings.Contains(services, "SERVICE") {
		t.Errorf("the services are %s", services)
	}
	files := bundled(t, file)
	for name, content := range files {
		if bytes.Contains(bytes.ReplaceAll(content, []byte{0}, nil), []byte(secret)) {
			t.Errorf("the secret is in %s", name)
		}
	}
	folder := "nodes/" + node.Name
	for name, want := range map[string]string{
		folder + "/files/C/etc/kubernetes/kubelet.conf": "token: REDACTED\n    name: ordinary",
		folder + "/logs/C/var/log/kubelet/kubelet.log":  "] ordinary",
		folder + "/tables/registry.txt":                 "ApiToken",
	} {
		if !strings.Contains(strings.ReplaceAll(string(files[name]), "c:", "C:"), want) {
			t.Errorf("%s is %.500q, without %q", name, files[name], want)
		}
	}
}

// bundled returns the content of a bundle's files, by name.
func bundled(t *testing.T, path string) map[string][]byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for tape := tar.NewReader(unzipped); ; {
		header, err := tape.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/") // below the bundle's folder
		if files[name], err = io.ReadAll(tape); err != nil {
			t.Fatal(err)
		}
	}
}
