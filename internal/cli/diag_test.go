package cli_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/inspect/diag"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// diagnosed returns a workplace with simulated nodes from which to make a bundle.
func diagnosed(t *testing.T, names ...string) (*workplace, map[string]*simulated.Machine, map[string]func()) {
	t.Helper()
	w := &workplace{t: t, folder: t.TempDir()}
	machines, unplugs := map[string]*simulated.Machine{}, map[string]func(){}
	var file strings.Builder
	for _, name := range names {
		machine, document, unplug := simulatedNode(t, name, w.folder)
		machines[name], unplugs[name] = machine, unplug
		file.WriteString(document + "---\n")
	}
	w.write("swdt.yaml", []byte(file.String()))
	return w, machines, unplugs
}

func (w *workplace) bundle() string { return filepath.Join(w.folder, "bundle.tar.gz") }

// unpacked reads a bundle into memory.
func unpacked(t *testing.T, path string) map[string][]byte {
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
	tape := tar.NewReader(unzipped)
	for {
		header, err := tape.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tape)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/") // below the bundle's folder
		files[name] = content
	}
}

// A bundle has none of the secrets planted in a node, of thirty kinds and in every place
// that it reads, but it has the rest of these places.
func TestABundleHasNoSecrets(t *testing.T) {
	w, machines, _ := diagnosed(t, "win")
	m := machines["win"]
	planted := plant(m)
	code, stdout := w.swdt(t.Context(), &lines{}, "diag", "--profile", "full", "--out", w.bundle(), "--redact",
		"bluebird-*")
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, stdout)
	}
	if len(planted) < 30 {
		t.Fatalf("only %d secrets", len(planted))
	}
	files := unpacked(t, w.bundle())
	for name, content := range files {
		text := bytes.ReplaceAll(content, []byte{0}, nil)
		for _, secret := range planted {
			if strings.Contains(name, secret) || bytes.Contains(text, []byte(secret)) {
				t.Errorf("%q is in %s", secret, name)
			}
		}
	}
	for name, want := range map[string]string{
		"nodes/win/files/C/etc/kubernetes/kubelet.conf":          "client-key-data: REDACTED",
		"nodes/win/logs/C/var/log/kubelet/kubelet.log":           "an ordinary line after the secrets",
		"nodes/win/tables/environment.txt":                       "ORDINARY",
		"nodes/win/tables/registry.txt":                          "AppDirectory",
		"nodes/win/tables/events.txt":                            "ordinary event",
		"nodes/win/commands/routes.txt":                          "10.244.0.0",
		"nodes/win/files/C/Program Files/containerd/config.toml": "version = 2",
		"nodes/win/tables/services.txt":                          "--config=/var/lib/kubelet/config.yaml",
		"nodes/win/tables/components.txt":                        "kubelet",
		"nodes/win/logs/C/var/log/pods/default_REDACTED":         "of a pod whose name fits a pattern",
		"nodes/win/files/C/etc/cni/net.d/REDACTED":               "cniVersion",
	} {
		if !strings.Contains(string(files[name]), want) {
			t.Errorf("%s does not have %q:\n%.600s", name, want, files[name])
		}
	}
}

// plant puts secrets in every place that a bundle reads, and returns the texts that the
// bundle must not contain.
func plant(m *simulated.Machine) []string {
	const jwt = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJlLW9mLXRoaXM"
	const body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
	pem := "-----BEGIN RSA PRIVATE KEY-----\r\n" + body + "\r\n-----END RSA PRIVATE KEY-----\r\n"
	planted := []string{jwt[40:], body}
	n := 0
	next := func() string { n++; s := fmt.Sprintf("s3cr3t-%02d-x", n); planted = append(planted, s); return s }

	m.WriteFile(`C:\etc\kubernetes\kubelet.conf`, []byte("users:\n- name: u\n  user:\n    client-key-data: "+
		next()+"\n    token: "+next()+"\n    password: "+next()+"\n"))
	m.WriteFile(`C:\Program Files\containerd\config.toml`,
		[]byte("version = 2\n[plugins.registry.configs.\"r.io\".auth]\n  username = \"me\"\n  password = \""+
			next()+"\"\n  identitytoken = \""+next()+"\"\n"))
	m.WriteFile(`C:\etc\cni\net.d\10-calico.conf`, []byte(`{"name":"Calico","policy":{"k8s_auth_token":"`+next()+
		`"},"etcd":"https://root:`+next()+`@10.0.0.1:2379"}`))
	m.WriteFile(`C:\ProgramData\docker\config\daemon.json`, []byte(`{"auths":{"r.io":{"auth":"czNjcjN0LTk5LXg="}}}`))
	planted = append(planted, "czNjcjN0LTk5LXg=")
	m.WriteFile(`C:\CalicoWindows\config.ps1`,
		[]byte("$env:CNI_PASSWORD = '"+next()+"'\r\n$env:DATASTORE = 'kubernetes'\r\n"))
	m.WriteFile(`C:\k\StartKubelet.ps1`,
		[]byte("kubeadm join x --token abcdef.x7h2k9q1m4z8w3y6 --certificate-key "+next()+"\r\n"))
	planted = append(planted, "x7h2k9q1m4z8w3y6")

	log := "I1120 14:29:59.1 1 x.go:1] \"Request\" header=\"Authorization: Bearer " + next() + "\"\n" +
		"E1120 14:29:59.2 1 x.go:1] connect \"Server=db;User=sa;Password=" + next() + ";\" failed\n" +
		"I1120 14:29:59.3 1 x.go:1] https://acc.blob.core.windows.net/c?sv=1&sig=" + next() + "\n" +
		"I1120 14:29:59.4 1 x.go:1] AccountName=a;AccountKey=" + next() + ";\n" +
		"I1120 14:29:59.5 1 x.go:1] token " + jwt + "\n" + pem +
		"I1120 14:29:59.6 1 x.go:1] {\"aws_secret_access_key\":\"" + next() + "\",\"id\":\"AKIAIOSFODNN7EXAMPLE\"}\n" +
		"I1120 14:29:59.7 1 x.go:1] run x.exe --api-key " + next() + " --db-password=" + next() + "\n" +
		"I1120 14:29:59.8 1 x.go:1] env=[\"A=1\",\"GITHUB_TOKEN=ghp_abcdefghijklmnopqrstuvwxyz0123456789\"]\n" +
		"I1120 14:29:59.9 1 x.go:1] project bluebird-4711 is secret\n" +
		"I1120 14:30:00.0 1 x.go:1] an ordinary line after the secrets\n"
	planted = append(planted, "AKIAIOSFODNN7EXAMPLE", "ghp_abcdefghij", "bluebird-4711")
	m.WriteFile(`C:\var\log\kubelet\kubelet.log`,
		[]byte(strings.Repeat("I1120 14:29:58.0 1 x.go:1] filler\n", 20_000)+log))
	m.WriteFile(`C:\var\log\pods\default_web_1\web\0.log`,
		[]byte("2026-11-20T14:29:59.1Z stdout F password="+next()+"\n"))
	m.WriteFile(`C:\var\log\pods\default_bluebird-4712_1\web\0.log`,
		[]byte("2026-11-20T14:29:59.1Z stdout F of a pod whose name fits a pattern\n"))
	m.WriteFile(`C:\etc\cni\net.d\bluebird-4713.conf`, []byte(`{"cniVersion":"1.0.0"}`))
	planted = append(planted, "bluebird-4712", "bluebird-4713")
	m.WriteFile(`C:\Windows\Logs\CBS\CBS.log`, wide16("2026-11-20 14:29:59, Info CBS password: "+next()+"\r\n"))

	const parameters = `HKLM\SYSTEM\CurrentControlSet\Services\kubelet\Parameters`
	registry := m.Process("plant").Registry
	text := func(key, name, value string) {
		_ = registry.Set(key, platform.RegistryValue{Name: name, Type: platform.RegistryString, String: value})
	}
	text(parameters, "AppDirectory", `C:\k`)
	text(parameters, "ServicePassword", next())
	_ = registry.Set(parameters, platform.RegistryValue{Name: "AppEnvironmentExtra",
		Type: platform.RegistryMultiString, Strings: []string{"A=1", "API_TOKEN=" + next()}})
	const environment = `HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment`
	text(environment, "ORDINARY", "value")
	text(environment, "DB_PASSWORD", next())
	text(environment, "CONNECTION", "Server=x;Pwd="+next()+";")

	m.LogEvent(simulated.LoggedEvent{Channel: "System", Provider: "P", ID: 1, Level: 3, Message: "ordinary event"})
	m.LogEvent(simulated.LoggedEvent{Channel: "Application", Provider: "P", ID: 2, Level: 2,
		Message: `{"password":"` + next() + `"}`})
	m.LogEvent(simulated.LoggedEvent{Channel: "Application", Provider: "P", ID: 3, Level: 2,
		Data: []string{"password=" + next()}})

	out, errOut := "10.244.0.0 255.255.0.0\r\nproxy http://me:"+next()+"@proxy:3128\r\n",
		"warning: client_secret="+next()+"\r\n"
	m.Script(func(c platform.Command) (simulated.Answer, bool) {
		return simulated.Answer{Stdout: out, Stderr: errOut}, c.Path == "route"
	})
	return planted
}

// wide16 returns text as UTF-16 with a byte order mark, as PowerShell writes a log.
func wide16(text string) []byte {
	out := []byte{0xff, 0xfe}
	for _, c := range []byte(text) {
		out = append(out, c, 0)
	}
	return out
}

// The tables of a bundle are the same as those that the commands print.
func TestShowPrintsWhatTheCommandsPrint(t *testing.T) {
	w, _, _ := diagnosed(t, "win")
	if code, out := w.swdt(t.Context(), &lines{}, "diag", "--out", w.bundle()); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	for table, command := range map[string][]string{
		"runtime-version": {"cri", "version"}, "runtime-status": {"cri", "status"}, "images": {"cri", "images"},
	} {
		_, live := w.swdt(t.Context(), &lines{}, command...)
		code, kept := w.swdt(t.Context(), &lines{}, "diag", "show", w.bundle(), "win", table)
		switch {
		case code != 0:
			t.Errorf("code = %v, want 0", code)
		case kept != live:
			t.Errorf("kept = %v, want %v", kept, live)
		case live == "":
			t.Errorf("live is empty; %s: exit code %d\n%s\nand live\n%s", table, code, kept, live)
		}
	}
	code, summary := w.swdt(t.Context(), &lines{}, "diag", "show", w.bundle())
	switch {
	case code != 0:
		t.Errorf("code = %v, want 0", code)
	case !strings.Contains(summary, "whole"):
		t.Errorf("summary lacks %q:\n%s", "whole", summary)
	case !strings.Contains(summary, "Windows Server 2022"):
		t.Errorf("summary lacks %q:\n%s; exit code %d\n%s", "Windows Server 2022", summary, code, summary)
	}
	code, node := w.swdt(t.Context(), &lines{}, "diag", "show", w.bundle(), "win")
	switch {
	case code != 0:
		t.Errorf("code = %v, want 0", code)
	case !strings.Contains(node, "the node has no w32tm"):
		t.Errorf("node lacks %q:\n%s", "the node has no w32tm", node)
	case !strings.Contains(node, "services"):
		t.Errorf("node lacks %q:\n%s; exit code %d\n%s", "services", node, code, node)
	}
	code, document := w.swdt(t.Context(), &lines{}, "diag", "show", w.bundle(), "win", "services", "-o", "json")
	var shown struct {
		Nodes []struct {
			Document []struct{ Name, State string }
		}
	}
	switch err := json.Unmarshal([]byte(document), &shown); {
	case err != nil:
		t.Fatalf("unexpected error: %v", err)
	case code != 0:
		t.Fatalf("code = %v, want 0", code)
	case len(shown.Nodes) != 1:
		t.Fatalf("len(shown.Nodes) = %v, want 1; exit code %d, %v\n%s", len(shown.Nodes), code, err, document)
	}
	if services := shown.Nodes[0].Document; len(services) < 5 || services[0].State == "" {
		t.Errorf("the services are %+v", services)
	}
}

// A bundle lists nodes that are dead or silent, with the reasons, and does not wait
// for them.
func TestABundleOfThirtyNodesThreeOfThemDead(t *testing.T) {
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("win-%02d", i))
	}
	w, machines, unplugs := diagnosed(t, names...)
	unplugs["win-03"]()
	unplugs["win-17"]()
	hangs := make(chan struct{})
	t.Cleanup(func() { close(hangs) })
	machines["win-25"].OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpProcessRun && op.Phase == simulated.Before &&
			strings.Contains(op.Target, "ipconfig") {
			<-hangs // a program that prints nothing and does not end
		}
		return simulated.Continue()
	})
	story := &lines{}
	code, stdout := w.swdt(t.Context(), story, "diag", "--out", w.bundle(), "--node-timeout", "40s")
	if code != 3 {
		t.Errorf("exit code %d\n%s\n%s", code, stdout, story)
	}
	bundle, err := diag.Open(w.bundle())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range bundle.Manifest.Nodes {
		want, reason := diag.Whole, ""
		switch n.Name {
		case "win-03", "win-17":
			want, reason = diag.Failed, "connection refused"
		case "win-25":
			want, reason = diag.Partial, "ipconfig"
		}
		if n.Result != want || !strings.Contains(n.Error, reason) {
			t.Errorf("%s is %s (%s), want %s (%s)", n.Name, n.Result, n.Error, want, reason)
		}
	}
}

func TestACancelledBundleLeavesNothing(t *testing.T) {
	w, machines, _ := diagnosed(t, "win")
	ctx, interrupt := context.WithCancelCause(t.Context())
	cancel := func() { interrupt(&cli.InterruptedError{Signal: "test"}) }
	machines["win"].OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpProcessRun {
			cancel()
		}
		return simulated.Continue()
	})
	w.write("bundle.tar.gz", []byte("an older one"))
	code, _ := w.swdt(ctx, &lines{}, "diag", "--out", w.bundle())
	if code != 130 {
		t.Errorf("exit code %d", code)
	}
	left, err := filepath.Glob(filepath.Join(w.folder, ".bundle*"))
	if err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
	if content, err := os.ReadFile(w.bundle()); err != nil || string(content) != "an older one" {
		t.Errorf("the file that stood there is %q, %v", content, err)
	}
}

func TestDiagRefusesNonsense(t *testing.T) {
	w, _, _ := diagnosed(t, "win")
	for _, args := range [][]string{
		{"diag", "--redact", "*"}, {"diag", "--profile", "huge"}, {"diag", "--out", w.folder},
		{"diag", "--node-timeout", "0s"}, {"diag", "--evtx", "--redact", "x*"}, {"diag", "show"},
	} {
		story := &lines{}
		if code, _ := w.swdt(t.Context(), story, args...); code != 2 {
			t.Errorf("%v: exit code %d\n%s", args, code, story)
		}
	}
}
