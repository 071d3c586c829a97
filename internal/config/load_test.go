package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/testing/workdir"
)

// head begins a node file that only lacks the part that a test adds; it has 6 lines.
const head = `apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata: {name: n}
spec:
  credentials:
    hostname: h
`

// provisioner has the required fields of a provisioner, in 4 lines. A test can add
// further fields below it, indented by 8.
const provisioner = `  kubernetes:
    provisioners:
      - name: kubelet
        sourceURL: k.exe
`

func loadText(t *testing.T, text string) ([]Document, error) {
	t.Helper()
	return Load([]string{Stdin}, strings.NewReader(text))
}

func TestLoadPublishedSample(t *testing.T) {
	_, err := Load([]string{"testdata/published.yaml"}, nil)
	want := "testdata/published.yaml:17: the value of name ends in a colon; remove the colon at the end of the line"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestLoadSample(t *testing.T) {
	documents, err := Load([]string{"testdata/sample.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	seconds := func(n int) *v1alpha1.Duration {
		return &v1alpha1.Duration{Duration: time.Duration(n) * time.Second}
	}
	want := v1alpha1.Node{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind,
		Metadata: v1alpha1.Metadata{Name: "sample"},
		Spec: v1alpha1.NodeSpec{
			Credentials: v1alpha1.Credentials{Username: "Administrator", Hostname: "192.168.122.220:22"},
			Setup:       v1alpha1.Setup{EnableRDP: &yes, ChocoPackages: []string{"vim", "grep"}},
			Kubernetes: v1alpha1.Kubernetes{Containerd: v1alpha1.Containerd{
				CNI:      v1alpha1.ContainerdCNI{BinDirectory: `C:\opt\cni\bin`, ConfigDirectory: `C:\etc\cni\net.d`},
				LogFile:  `C:\var\log\containerd\containerd.log`,
				LogLevel: "info",
			}, Kubelet: v1alpha1.Kubelet{LogFileSize: "50Mi", LogFileAge: &v1alpha1.Duration{Duration: 7 * 24 * time.Hour}},
				Provisioners: []v1alpha1.Provisioner{
					{
						Name: "containerd", Version: "1.7.11", SourceURL: "http://xyz/containerd.exe",
						Destination: `c:\Program Files\containerd\bin\containerd.exe`, Overwrite: &yes,
						Health: &v1alpha1.Health{
							CRIPipe: `\\.\pipe\containerd-containerd`,
							Settle:  seconds(1), Timeout: seconds(60), StopTimeout: seconds(30),
						},
					},
					{
						Name: "kubelet", Version: "1.29.0", SourceURL: "http://xyz/kubelet.exe",
						Destination: `c:\k\kubelet.exe`, Overwrite: &yes,
						Health: &v1alpha1.Health{
							HTTPGet: "http://127.0.0.1:10248/healthz",
							Settle:  seconds(1), Timeout: seconds(60), StopTimeout: seconds(30),
						},
					},
				}},
		},
	}
	if len(documents) != 1 {
		t.Fatalf("got %d documents, want 1", len(documents))
	}
	got := documents[0]
	if diff := cmp.Diff(want, got.Node); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
	switch {
	case got.File != "testdata/sample.yaml":
		t.Errorf("got.File = %q, want %q", got.File, "testdata/sample.yaml")
	case got.Line != 1:
		t.Errorf("got.Line = %v, want 1", got.Line)
	case len(got.Warnings) != 0:
		t.Errorf("len(got.Warnings) = %v, want 0; got File %q, Line %d, Warnings %q", len(got.Warnings), got.File,
			got.Line, got.Warnings)
	}
}

func TestLoadMerge(t *testing.T) {
	documents, err := loadText(t, `apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata: {name: n}
spec:
  credentials: {hostname: h}
  kubernetes:
    provisioners:
      - &first {name: a, sourceURL: a.exe, destination: 'c:\a.exe', version: 1}
      - {<<: *first, name: b, destination: 'c:\b.exe'}
`)
	if err != nil {
		t.Fatal(err)
	}
	got := documents[0].Node.Spec.Kubernetes.Provisioners[1]
	switch {
	case got.Name != "b":
		t.Errorf("got.Name = %q, want %q", got.Name, "b")
	case got.Destination != `c:\b.exe`:
		t.Errorf("got.Destination = %q, want %q", got.Destination, `c:\b.exe`)
	case got.SourceURL != "a.exe":
		t.Errorf("got.SourceURL = %q, want %q", got.SourceURL, "a.exe")
	case got.Version != "1":
		t.Errorf("got.Version = %q, want %q; got %+v", got.Version, "1", got)
	}
}

func TestLoadSources(t *testing.T) {
	folder := t.TempDir()
	node := func(name string) string { return strings.Replace(head, "name: n", "name: "+name, 1) }
	write := func(name string, data []byte) string {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("nodes/b.yml", []byte("%YAML 1.1\n---\n"+node("b1")+"---\n"+node("b2")+"...\n"))
	write("nodes/a.YAML", []byte("\xef\xbb\xbf"+strings.ReplaceAll(node("a"), "\n", "\r\n")))
	write("nodes/ignored.txt", []byte("not: [yaml"))
	units := utf16.Encode([]rune("\ufeff" + node("wide")))
	wide := make([]byte, 0, 2*len(units))
	for _, u := range units {
		wide = append(wide, byte(u), byte(u>>8))
	}
	file := write("wide.yaml", wide)
	write("empty/readme.md", nil)

	documents, err := Load([]string{filepath.Join(folder, "nodes"), file, Stdin}, strings.NewReader(node("stdin")))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range documents {
		got = append(got, d.Node.Metadata.Name)
	}
	if diff := cmp.Diff([]string{"a", "b1", "b2", "wide", "stdin"}, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if documents[2].Line != 10 {
		t.Errorf("b2 begins on line %d, want 10", documents[2].Line)
	}

	// Files as tools of Windows leave them.
	for name, text := range map[string]string{
		"CR CR LF": strings.ReplaceAll(node("x"), "\n", "\r\r\n"), "NUL tail": node("x") + "\x00\x00", "COPY": node("x") + "\x1a",
		"UTF-16 without a mark": string(wide[2:]),
	} {
		documents, err := Load([]string{write("tool.yaml", []byte(text))}, nil)
		if err != nil || len(documents) != 1 || documents[0].Line != 1 {
			t.Errorf("%s: %v, %v", name, documents, err)
		}
	}

	missing, empty := filepath.Join(folder, "missing.yaml"), filepath.Join(folder, "empty")
	_, err = Load([]string{missing, empty, file, file}, nil)
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		empty + ": the folder has no *.yaml or *.yml file; name a node file",
		file + ": is named twice; name it once",
		missing + ": cannot be read: no such file or directory; check the path and its permissions",
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range want {
		if !strings.HasPrefix(lines[i], line[:strings.LastIndex(line, ":")]) {
			t.Errorf("line %d: got %q, want %q", i, lines[i], line)
		}
	}
}

func TestDefaultSource(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("AppData", "")
	workdir.Change(t, work)

	if _, err := DefaultSource(); !errors.As(err, new(*Error)) {
		t.Errorf("without a file: got %v, want an *Error", err)
	}
	// relative: not in any home folder, whatever the environment is
	here := filepath.Join(".config", "swdt", "config.yaml")
	if err := errors.Join(os.MkdirAll(filepath.Dir(here), 0o755), os.WriteFile(here, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{"", "."} {
		t.Setenv("HOME", none)
		t.Setenv("USERPROFILE", none)
		if source, err := DefaultSource(); err == nil && !filepath.IsAbs(source) {
			t.Errorf("with the home %q: %s", none, source)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	inHome := filepath.Join(home, ".config", "swdt", "config.yaml")
	inXDG := filepath.Join(t.TempDir(), "swdt", "config.yaml")
	t.Setenv("XDG_CONFIG_HOME", filepath.Dir(filepath.Dir(inXDG)))
	for _, file := range []string{inHome, inXDG, "swdt.yaml"} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(head), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := DefaultSource(); err != nil || got != file {
			t.Errorf("got %q, %v, want %q", got, err, file)
		}
	}
}

// For any text, problems have a file and an existing line.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"published.yaml", "sample.yaml", "older/original-1-config.yaml",
		"older/fork-5-calico-version.yaml"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add(string(Starter()))
	f.Add(string(FullStarter()))
	f.Add("a: &a [*a]\n---\n- {<<: *a}\n")
	f.Add(head + "    <<: {password: x}\n    ? {}\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Load([]string{Stdin}, strings.NewReader(text))
		checkError(t, text, err)
		converted, err := Convert(Stdin, strings.NewReader(text))
		checkError(t, text, err)
		if err == nil && len(converted) == 0 {
			t.Error("converted to nothing, without an error")
		}
	})
}
