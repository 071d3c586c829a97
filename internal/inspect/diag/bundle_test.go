package diag

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/ui"
)

// gathered returns the folder and the manifest of a gathering from two nodes, and from a
// third that was not reached.
func gathered(t *testing.T) (root string, m Manifest) {
	t.Helper()
	root = t.TempDir()
	redactor, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	m = Manifest{Format: Format, SWDT: "v1.2.3", Created: time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC),
		Profile: "network"}
	for i, name := range []string{"win-1", "win-2"} {
		record := NodeRecord{Name: name, Folder: "nodes/" + name, Result: Whole, Seconds: 2.5,
			Windows: "Windows Server 2022 Datacenter 20348.2849"}
		f := &folder{root: root, name: record.Folder, redactor: redactor, taken: map[string]bool{}}
		task := &Task{folder: f, record: &CollectorRecord{Name: "services", About: "services", Result: Done}}
		rows := [][]string{{"containerd", "running", "4711",
			`"C:\Program Files\containerd\bin\containerd.exe" --run-service`}}
		for n := range 40 {
			rows = append(rows, []string{fmt.Sprintf("service-%02d", n), "stopped", "",
				`C:\Windows\System32\svchost.exe -k netsvcs`})
		}
		err := task.Table("services", rows,
			func(w io.Writer) error { return ui.Table(w, []string{"SERVICE", "STATE", "PID", "COMMAND LINE"}, rows) })
		if err != nil {
			t.Fatal(err)
		}
		facts := [][]string{{"hostname", name}, {"Windows", record.Windows}, {"memory", "11.2 GB free of 16.0 GB"}}
		for _, name := range []string{"machine", "cluster-node"} {
			if err := task.Table(name, facts, func(w io.Writer) error { return ui.Lines(w, facts) }); err != nil {
				t.Fatal(err)
			}
		}
		logs := &Task{folder: f, record: &CollectorRecord{Name: "logs", About: "the ends of the logs", Result: Done}}
		err = logs.write(FileRecord{Path: "logs/C/var/log/kubelet/kubelet.log", From: `C:\var\log\kubelet\kubelet.log`,
			Log: true}, 1<<20, func(w io.Writer) error {
			for n := range 200 {
				fmt.Fprintf(w,
					"I1120 14:29:59.%06d    4711 kubelet.go:2345] \"SyncLoop ADD\" pods=[\"default/web-%d\"]\n", n, n)
			}
			_, err := fmt.Fprintf(w,
				"E1120 14:30:00.000000    4711 pod.go:7] failed on %s </script><script>alert(1)</script>\n", name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		record.Collectors = []CollectorRecord{*task.record, *logs.record,
			{Name: "hnsdiag", About: "the host network service", Result: Absent, Error: "the node has no hnsdiag"}}
		if i == 1 {
			record.Result, record.Error = Partial, "1 of 4 collectors failed; events: no answer within 1m0s"
			record.Collectors = append(record.Collectors, CollectorRecord{Name: "events", About: "the last events",
				Result: Late, Error: "no answer within 1m0s"})
			record.Findings = []Finding{
				{Severity: "info", What: "a reboot is pending", Evidence: "Windows Update"},
				{Severity: "error", What: "the disk is nearly full", Evidence: "1.2 GB free on C:",
					Remedy: "remove images: crictl rmi --prune"},
			}
		}
		m.Nodes = append(m.Nodes, record)
	}
	m.Nodes = append(m.Nodes, NodeRecord{Name: "win-3", Folder: "nodes/win-3", Result: Failed,
		Error: "connect to 10.0.0.3:22: connection refused"})
	return root, m
}

func packed(t *testing.T) string {
	t.Helper()
	root, m := gathered(t)
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := pack(t.Context(), root, path, m); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestABundleIsReadBack(t *testing.T) {
	b, err := Open(packed(t))
	if err != nil {
		t.Fatal(err)
	}
	n, err := b.Node("win-1")
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := b.Table(n, "services", &table); err != nil ||
		!strings.Contains(table.String(), "containerd  running  4711") {
		t.Errorf("%v\n%s", err, table.String())
	}
	if document, err := b.Document(n, "services"); err != nil || !strings.HasPrefix(string(document), "[") {
		t.Errorf("%s, %v", document, err)
	}
	for _, ask := range []func() error{
		func() error { _, err := b.Node("win-9"); return err },
		func() error { return b.Table(n, "../../manifest", io.Discard) },
		func() error { return b.Table(n, "pods", io.Discard) },
		func() error { return b.Table(b.Manifest.Nodes[2], "pods", io.Discard) },
	} {
		if err := ask(); err == nil {
			t.Error("what is not there was given")
		}
	}
}

// The error reports whether a file is damaged, cut or not a bundle. A bundle with a path that
// leads out of its folder is rejected.
func TestOtherFilesAreNoBundle(t *testing.T) {
	whole, err := os.ReadFile(packed(t))
	if err != nil {
		t.Fatal(err)
	}
	of := func(headers ...tar.Header) []byte {
		var out bytes.Buffer
		zipped := gzip.NewWriter(&out)
		tape := tar.NewWriter(zipped)
		for _, h := range headers {
			content := []byte(`{"format":"` + Format +
				`","nodes":[{"name":"n","folder":"../..","collectors":[{"name":"c","tables":["passwd"]}]}]}`)
			if h.Typeflag == 0 {
				h.Typeflag, h.Size = tar.TypeReg, int64(len(content))
			}
			if err := tape.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if h.Size > 0 {
				tape.Write(content)
			}
		}
		tape.Close()
		zipped.Close()
		return out.Bytes()
	}
	manifest, inFolder := tar.Header{Name: manifestName}, tar.Header{Name: "b/" + manifestName}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 0xff
	for name, content := range map[string][]byte{
		"empty": nil, "text": []byte("hello"), "cut": whole[:len(whole)/2], "damaged": damaged,
		"outside":   of(inFolder, tar.Header{Name: "c/nodes/x"}),
		"beside":    of(inFolder, tar.Header{Name: "index.html"}),
		"deep":      of(tar.Header{Name: "a/b/" + manifestName}),
		"up":        of(manifest, tar.Header{Name: "../../etc/passwd"}),
		"root":      of(manifest, tar.Header{Name: "/etc/passwd"}),
		"drive":     of(manifest, tar.Header{Name: `C:\x`}),
		"link":      of(manifest, tar.Header{Name: "nodes/x", Linkname: "/etc", Typeflag: tar.TypeSymlink}),
		"not first": of(tar.Header{Name: "a"}, manifest), "nothing": of(),
	} {
		path := filepath.Join(t.TempDir(), "x.tar.gz")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		err := readAll(path)
		var no *NoBundleError
		if !errors.As(err, &no) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// A bundle unpacks into a folder of its name. Those of an earlier swdt, which had none, are still read.
func TestABundleUnpacksIntoItsFolder(t *testing.T) {
	path := packed(t)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var older bytes.Buffer
	zipped := gzip.NewWriter(&older)
	rewritten := tar.NewWriter(zipped)
	for tape := tar.NewReader(unzipped); ; {
		header, err := tape.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name, inFolder := strings.CutPrefix(header.Name, "bundle/")
		if !inFolder {
			t.Errorf("%s is not in the folder bundle", header.Name)
		}
		header.Name = name
		if err := rewritten.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(rewritten, tape); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(rewritten.Close(), zipped.Close(), os.WriteFile(path, older.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Table(b.Manifest.Nodes[0], "services", io.Discard); err != nil {
		t.Errorf("an older bundle: %v", err)
	}
}

// readAll reads every table that the manifest of a bundle lists.
func readAll(path string) error {
	b, err := Open(path)
	if err != nil {
		return err
	}
	for _, n := range b.Manifest.Nodes {
		for _, table := range n.Tables() {
			if err := b.Table(n, table, io.Discard); err != nil {
				return err
			}
		}
	}
	return b.read("what no bundle has", nil)
}

func TestANameInTheBundleLeadsNowhere(t *testing.T) {
	for path, want := range map[string]string{
		`C:\var\log\x.log`: "C/var/log/x.log", `..\..\x`: "_/_/x", `C:\a\..\..\b`: "C/a/_/_/b",
		`\\server\share\x`: "server/share/x",
		`C:\a b\ü:stream`:  "C/a b/__stream", `C:\ \x`: "C/_/x",
	} {
		if got := safePath(path); got != want || !stays("nodes/n/"+got) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if name := safeName(strings.Repeat("ä/..", 100)); len(name) > longestName || strings.Contains(name, "/") {
		t.Error(name)
	}
}

func TestTwoNodesOfOneFolder(t *testing.T) {
	g := &gathering{folders: map[string]bool{}}
	var all []string
	for _, name := range []string{"win", "Win", "w/n", "w:n"} {
		all = append(all, g.folder(name))
	}
	if got := strings.Join(all, ", "); got != "nodes/win, nodes/Win (2), nodes/w_n, nodes/w_n (2)" {
		t.Error(got)
	}
}

func TestTwoFilesOfOneName(t *testing.T) {
	redactor, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{root: t.TempDir(), name: "nodes/n", redactor: redactor, taken: map[string]bool{}}
	var paths []string
	for _, name := range []string{"a", "A", "a"} {
		o, path, err := f.output(name, 3)
		if err != nil {
			t.Fatal(err)
		}
		o.Write([]byte("hello"))
		switch err := o.Close(); {
		case err != nil:
			t.Errorf("unexpected error: %v", err)
		case o.kept != 3:
			t.Errorf("o.kept = %v, want 3", o.kept)
		case !o.cut:
			t.Errorf("o.cut = false, want true; kept %d, cut %t, %v", o.kept, o.cut, err)
		}
		paths = append(paths, path)
	}
	if got := strings.Join(paths, " "); got != "nodes/n/a nodes/n/A (2) nodes/n/a (3)" {
		t.Error(got)
	}
}

func TestPortNames(t *testing.T) {
	list := "ITEM LIST\r\n==\r\n\r\nPort name             : 6F2B9C5E-0001\r\nPort Friendly name    : web\r\n\r\nPort " +
		"name : /evil x\r\nPort name : \r\n"
	if got := portNames(list); len(got) != 1 || got[0] != "6F2B9C5E-0001" {
		t.Errorf("%q", got)
	}
}

func TestNamedFiles(t *testing.T) {
	got := namedFiles(`C:\k\kubelet.exe --config=/var/lib/kubelet/config.yaml --kubeconfig ` +
		`C:\etc\kubernetes\kubelet.conf --config-dir=/k/conf.d --v=2 --config`)
	if strings.Join(got, " ") != `C:\var\lib\kubelet\config.yaml C:\etc\kubernetes\kubelet.conf C:\k\conf.d\*.conf` {
		t.Errorf("%q", got)
	}
}
