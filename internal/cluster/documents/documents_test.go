package documents_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swdt-dev/swdt/internal/cluster/documents"
)

// folder returns the names of the files that Folder reads, and of those that it skips.
func folder(t *testing.T, name string) (read, skipped []string) {
	t.Helper()
	root, err := os.OpenRoot(name)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	err = documents.Folder(root.FS(), documents.Files{
		Wanted:  documents.IsManifest,
		Read:    func(name string, content []byte) { read = append(read, name+"="+string(content)) },
		Skipped: func(name, _ string) { skipped = append(skipped, name) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return read, skipped
}

// All files of a mounted ConfigMap are links, as kubelet's AtomicWriter makes them (pkg/volume/util/atomic_writer.go of
// Kubernetes 1.36.3): web.yaml to ..data/web.yaml, and ..data to a folder with a time as its name. A link out of the
// folder is never followed.
func TestLinksBelowTheFolderAreFollowed(t *testing.T) {
	outside, inside := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{
		filepath.Join(outside, "secret.yaml"):                     "outside",
		filepath.Join(inside, "..2026_11_30_10_00_00.1/web.yaml"): "inside",
		filepath.Join(inside, "deep/a.yaml"):                      "a",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"..data": "..2026_11_30_10_00_00.1", "web.yaml": "..data/web.yaml", "out.yaml": filepath.Join(outside, "secret.yaml"),
		"nowhere.yaml": "none.yaml", "loop.yaml": "loop.yaml", "readme.md": "none.md", "folder": "deep",
	} {
		if err := os.Symlink(target, filepath.Join(inside, name)); err != nil {
			t.Fatal(err)
		}
	}
	read, skipped := folder(t, inside)
	if !slices.Equal(read, []string{"deep/a.yaml=a", "web.yaml=inside"}) ||
		!slices.Equal(skipped, []string{"folder", "loop.yaml", "nowhere.yaml", "out.yaml"}) {
		t.Errorf("read %q, skipped %q", read, skipped)
	}
}

// A document that is no YAML does not hide the others of its text, and all lines are those of the text.
func TestABrokenDocumentHidesNoOther(t *testing.T) {
	text := "# a licence\n---\na: 1\n---\n\nb: [\n--- # third\nc: |\n  ---\n  x\n---\ne: }\n"
	got := seen([]byte(text))
	if want := []string{"a at 3", "broken at 4", "c at 8", "broken at 11"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := seen([]byte(strings.Repeat("a: [\n---\n", 50_000))); len(got) != 10 {
		t.Errorf("%d documents", len(got))
	}
	if got := seen([]byte("%YAML 1.1\n---\r\na: 1\r\n---\r\nb: 2\r\n")); !slices.Equal(got, []string{"a at 3", "b at 5"}) {
		t.Errorf("%q", got)
	}
}

// seen returns the first key of each document with its line.
func seen(text []byte) (all []string) {
	documents.Each(text, func(d documents.Document) {
		n := d.Value
		all = append(all, fmt.Sprintf("%s at %d", n.Content[0].Value, n.Content[0].Line))
	}, func(b documents.Broken) {
		all = append(all, fmt.Sprintf("broken at %d", b.Line))
		if !strings.Contains(b.Err.Error(), "line ") {
			all = append(all, b.Err.Error())
		}
	})
	return all
}

// The files of a folder have a bound together.
func TestTheSumOfAFolderIsBounded(t *testing.T) {
	files, content := fstest.MapFS{}, make([]byte, 4<<20)
	for i := range 65 {
		files[fmt.Sprintf("%d.yaml", i)] = &fstest.MapFile{Data: content}
	}
	err := documents.Folder(files, documents.Files{Wanted: documents.IsManifest, Read: func(string, []byte) {}, Skipped: func(string, string) {}})
	var tooMany *documents.TooManyBytesError
	if !errors.As(err, &tooMany) {
		t.Error(err)
	}
}

// A value below a hundred others is cut.
func TestDepthIsBounded(t *testing.T) {
	for depth, want := range map[int]bool{50: false, 5_000: true} {
		cut := false
		documents.Each([]byte(strings.Repeat("[", depth)+"1"+strings.Repeat("]", depth)), func(d documents.Document) { cut = d.Cut },
			func(b documents.Broken) { t.Error(b.Err) })
		if cut != want {
			t.Errorf("depth %d: %t", depth, cut)
		}
	}
}
