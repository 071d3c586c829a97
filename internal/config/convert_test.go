package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestConvert(t *testing.T) {
	for _, name := range []string{"cluster", "deploys"} {
		t.Run(name, func(t *testing.T) {
			older, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Convert(bytes.NewReader(older))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".converted.yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What Convert writes loads, once what the older file lacks is filled in, and
// converting it again changes nothing.
func TestConvertedLoads(t *testing.T) {
	for _, name := range []string{"cluster", "deploys"} {
		converted, err := os.ReadFile(filepath.Join("testdata", name+".converted.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Convert(bytes.NewReader(converted))
		if err != nil || !bytes.Equal(again, converted) {
			t.Errorf("%s: converted again: %v\n%s", name, err, again)
		}
		_, err = Load([]string{Stdin}, bytes.NewReader(converted))
		if failure, ok := errors.AsType[*Error](err); name == "cluster" && (!ok || len(failure.Problems) != 1 || failure.Problems[0].Field != "spec.credentials.hostname") {
			t.Errorf("cluster: got %v, want only the missing hostname", err)
		}
		filled := strings.Replace(string(converted), `hostname: ""`, "hostname: node", 1)
		documents, err := Load([]string{Stdin}, strings.NewReader(filled))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		provisioners := documents[0].Node.Spec.Kubernetes.Provisioners
		if got := provisioners[len(provisioners)-1]; got.Name != "kubelet" || got.Destination != `c:\k\kubelet.exe` && got.Destination != `C:\k\kubelet.exe` {
			t.Errorf("%s: got provisioner %+v", name, got)
		}
	}
}

func TestConvertRefuses(t *testing.T) {
	tests := map[string]string{
		"kind: Cluster\napiVersion: cluster.x-k8s.io/v1\n": `-:2: apiVersion: "cluster.x-k8s.io/v1" is not understood; write apiVersion: windows.k8s.io/v1alpha1 and kind: Node`,
		"- name: a:\n": "-:1: the value of name ends in a colon; remove the colon at the end of the line",
		"":             "-:1: there is no node in it; `swdt config init` writes a file to start from",
	}
	for text, want := range tests {
		if _, err := Convert(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// A password stays where it belongs and shows in no comment.
func TestConvertKeepsSecrets(t *testing.T) {
	got, err := Convert(strings.NewReader(`
apiVersion: windows.k8s.io/v1alpha1
kind: Cluster
metadata: {name: a}
spec:
  workload:
    virtualization: {ssh: {hostname: h, password: hunter2}, rootPassword: hunter2}
`))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(got), "hunter2"); n != 1 || !strings.Contains(string(got), "password: hunter2") {
		t.Errorf("the password shows %d times in\n%s", n, got)
	}
}

func TestStarter(t *testing.T) {
	documents, err := Load([]string{Stdin}, bytes.NewReader(Starter()))
	if err != nil {
		t.Fatal(err)
	}
	if len(documents) != 1 || len(documents[0].Warnings) != 0 {
		t.Errorf("got %d documents, warnings %q", len(documents), documents[0].Warnings)
	}
	// With every field uncommented it still loads: the comments are true.
	var text strings.Builder
	for line := range strings.Lines(string(Starter())) {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "# "); ok && fieldOrItem(rest) {
			line = line[:len(line)-len(rest)-2] + rest
		}
		text.WriteString(line)
	}
	filled := strings.NewReplacer("sha256: …", "sha256: "+strings.Repeat("0", 64), "hostKey: SHA256:…", "hostKey: SHA256:"+strings.Repeat("A", 43),
		"privateKey: ~", "# privateKey: ~").Replace(text.String())
	documents, err = Load([]string{Stdin}, strings.NewReader(filled))
	if err != nil {
		t.Fatalf("%v in\n%s", err, filled)
	}
	if spec := documents[0].Node.Spec; len(spec.Setup.Firewall) != 1 || len(spec.Kubernetes.Provisioners[1].DependsOn) != 1 || spec.Credentials.PasswordFrom == nil {
		t.Errorf("not everything is uncommented: %+v", spec)
	}
}

// fieldOrItem is true of YAML in a comment, not of prose.
func fieldOrItem(comment string) bool {
	text := strings.TrimLeft(comment, " ")
	if strings.HasPrefix(text, "- ") {
		return true
	}
	key, _, ok := strings.Cut(text, ":")
	return ok && !strings.ContainsAny(key, " `;-")
}
