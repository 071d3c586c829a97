package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
)

var update = flag.Bool("update", false, "write the golden files anew")

// olderSamples are samples in every format that the original swdt and its fork had, each
// with the commits that read it. The conversion must keep what those commits did with it.
var olderSamples = map[string]converted{
	"original-1-config":         {rdp: new(true), packages: "vim grep", provisioners: "containerd kubelet"},
	"original-2-deploys":        {packages: "vim", provisioners: "kubelet"},
	"original-3-provisioners":   {rdp: new(true), packages: "vim"},
	"original-4-password":       {provisioners: "containerd"},
	"fork-1-version":            {rdp: new(true), packages: "vim", kubernetes: "1.29.0", provisioners: "kubelet"},
	"fork-2-privatekey":         {rdp: new(true), kubernetes: "1.29.0", provisioners: "containerd"},
	"fork-3-two-versions":       {rdp: new(true), kubernetes: "1.29.0"},
	"fork-4-containerd-version": {kubernetes: "1.29.0", containerd: "1.7.14"},
	"fork-5-calico-version":     {kubernetes: "1.29.0", containerd: "1.7.14", provisioners: "containerd kubelet"},
}

// converted is the state of a node that a converted file requests.
type converted struct {
	rdp                                            *bool
	packages, kubernetes, containerd, provisioners string
}

func convertedOf(spec v1alpha1.NodeSpec) converted {
	var names []string
	for _, p := range spec.Kubernetes.Provisioners {
		names = append(names, p.Name)
		if p.Overwrite != nil && !*p.Overwrite {
			names = append(names, "(not overwritten)")
		}
	}
	return converted{
		rdp: spec.Setup.EnableRDP, packages: strings.Join(spec.Setup.ChocoPackages, " "),
		kubernetes:   strings.TrimPrefix(spec.Kubernetes.Version, "v"),
		containerd:   strings.TrimPrefix(spec.Kubernetes.Containerd.Version, "v"),
		provisioners: strings.Join(names, " "),
	}
}

func TestConvert(t *testing.T) {
	workdir.Change(t, filepath.Join("testdata", "older")) // the converted files name the older ones
	files, err := filepath.Glob("*-*[a-z].yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if strings.HasSuffix(name, ".converted") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			want, listed := olderSamples[name]
			if !listed {
				t.Fatal("the sample is not in olderSamples")
			}
			got, err := Convert(file, nil)
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name+".converted.yaml", got)
			again, err := Convert(Stdin, bytes.NewReader(got))
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("converted again: %v\n%s", err, again)
			}
			documents, err := Load([]string{Stdin}, bytes.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, convertedOf(documents[0].Node.Spec),
				cmp.AllowUnexported(converted{})); diff != "" {
				t.Errorf("it asks for something else (-want +got):\n%s", diff)
			}
			if len(documents[0].OtherMeanings) > 0 {
				t.Errorf("the converted file still has another meaning: %q", documents[0].OtherMeanings)
			}
		})
	}
	if len(files) != 2*len(olderSamples) && !*update {
		t.Errorf("%d files for %d samples", len(files), len(olderSamples))
	}
}

func compareGolden(t *testing.T, golden string, got []byte) {
	t.Helper()
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
}

// For an older file, the loader's error proposes to convert it, and names the file.
func TestOlderFilesNameConvert(t *testing.T) {
	for name, kinds := range map[string]string{
		"original-1-config": "Node", "fork-5-calico-version": "Cluster and Node",
	} {
		file := "testdata/older/" + name + ".yaml"
		_, err := Load([]string{file}, nil)
		if err == nil || !strings.HasSuffix(err.Error(), "`swdt config convert "+file+"` writes it as "+kinds) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file of the original's last format is also valid today, but enableRDP: false had no
// effect there. The loader warns of that until the file has a field that only today's
// swdt has.
func TestOtherMeanings(t *testing.T) {
	const original = "apiVersion: windows.k8s.io/v1alpha1\nkind: Node\nmetadata: {name: a}\nspec:\n  credentials: " +
		"{hostname: h}\n  setup:\n    enableRDP: false\n"
	tests := map[string]int{
		original: 1,
		strings.Replace(original, "false", "true", 1):                            0,
		strings.Replace(original, "hostname: h", "hostname: h, proxyJump: j", 1): 0,
		original + "    features: [Containers]\n":                                0,
	}
	for text, want := range tests {
		documents, err := Load([]string{Stdin}, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		got := documents[0].OtherMeanings
		if len(got) != want || want > 0 &&
			!strings.HasPrefix(got[0], "-:7: spec.setup.enableRDP: false turns Remote Desktop off; ") {
			t.Errorf("%s: got %q", text, got)
		}
	}
}

// Aliases and merged mappings are replaced by their values.
func TestConvertFlattens(t *testing.T) {
	got, err := Convert(Stdin, strings.NewReader(`
apiVersion: windows.k8s.io/v1alpha1
kind: Config
metadata: {name: a}
spec:
  credentials: {hostname: h}
  kubernetes:
    deploys:
    - &first {name: containerd, sourceURL: ./x.exe, destination: 'c:\x.exe'}
    - {<<: *first, name: kubelet, destination: 'c:\y.exe'}
`))
	if err != nil {
		t.Fatal(err)
	}
	documents, err := Load([]string{Stdin}, bytes.NewReader(got))
	if err != nil {
		t.Fatalf("%v in\n%s", err, got)
	}
	if second := documents[0].Node.Spec.Kubernetes.Provisioners[1]; second.Name != "kubelet" ||
		second.SourceURL != "./x.exe" {
		t.Errorf("got %+v", second)
	}
}

func TestConvertRefuses(t *testing.T) {
	tests := map[string]string{
		"kind: Cluster\napiVersion: cluster.x-k8s.io/v1\n": `:2: apiVersion: "cluster.x-k8s.io/v1" ` +
			`is not understood; write apiVersion: windows.k8s.io/v1alpha1 and kind: Node`,
		"- name: a:\n": ":1: the value of name ends in a colon; remove the colon at the end of the line",
		"":             ":1: there is no node in it; `swdt config init` writes a file to start from",
	}
	for text, want := range tests {
		file := filepath.Join(t.TempDir(), "old.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Convert(file, nil); err == nil || err.Error() != file+want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, file+want)
		}
		if _, err := Convert(Stdin, strings.NewReader(text)); err == nil || err.Error() != "-"+want {
			t.Errorf("%q from stdin:\ngot  %v\nwant %s", text, err, "-"+want)
		}
	}
	if _, err := Convert("missing.yaml", nil); err == nil ||
		!strings.HasPrefix(err.Error(), "missing.yaml: cannot be read") {
		t.Errorf("a missing file: %v", err)
	}
}

// A password stays in its field and does not appear in a comment.
func TestConvertKeepsSecrets(t *testing.T) {
	got, err := Convert(Stdin, strings.NewReader(`
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
	documents, err := Load([]string{Stdin}, bytes.NewReader(FullStarter()))
	if err != nil {
		t.Fatal(err)
	}
	if len(documents) != 1 || len(documents[0].Warnings) != 0 {
		t.Errorf("got %d documents, warnings %q", len(documents), documents[0].Warnings)
	}
	// The file still loads with every field uncommented: the comments are correct.
	text := uncomment(string(FullStarter()))
	filled := strings.NewReplacer("sha256: …", "sha256: "+strings.Repeat("0", 64), "hostKey: SHA256:…",
		"hostKey: SHA256:"+strings.Repeat("A", 43),
		"privateKey: ~", "# privateKey: ~").Replace(text)
	documents, err = Load([]string{Stdin}, strings.NewReader(filled))
	if err != nil {
		t.Fatalf("%v in\n%s", err, filled)
	}
	switch spec := documents[0].Node.Spec; {
	case len(spec.Setup.Firewall) != 1:
		t.Errorf("len(spec.Setup.Firewall) = %v, want 1: %+v", len(spec.Setup.Firewall), spec.Setup.Firewall)
	case len(spec.Kubernetes.Provisioners[1].DependsOn) != 1:
		t.Errorf("len(spec.Kubernetes.Provisioners[1].DependsOn) = %v, want 1: %+v",
			len(spec.Kubernetes.Provisioners[1].DependsOn), spec.Kubernetes.Provisioners[1].DependsOn)
	case spec.Credentials.PasswordFrom == nil:
		t.Errorf("spec.Credentials.PasswordFrom is nil; not everything is uncommented: %+v", spec)
	}
}

// uncomment returns a starter with every field that it shows in a comment.
func uncomment(starter string) string {
	var text strings.Builder
	for line := range strings.Lines(starter) {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "# "); ok && fieldOrItem(rest) {
			line = line[:len(line)-len(rest)-2] + rest
		}
		text.WriteString(line)
	}
	return text.String()
}

// fieldOrItem reports whether a comment is YAML, as opposed to prose.
func fieldOrItem(comment string) bool {
	text := strings.TrimLeft(comment, " ")
	if strings.HasPrefix(text, "- ") {
		return true
	}
	key, _, ok := strings.Cut(text, ":")
	return ok && !strings.ContainsAny(key, " `;-")
}
