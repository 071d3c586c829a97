package source

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestFileURLs(t *testing.T) {
	for _, c := range []struct{ rest, goos, want string }{
		{"/k/kubelet.exe", "linux", "/k/kubelet.exe"},
		{"localhost/k/x", "darwin", "/k/x"},
		{"/k/a%20b", "linux", "/k/a b"},
		{"/C:/k/kubelet.exe", "windows", `C:\k\kubelet.exe`},
		{"C:/k/kubelet.exe", "windows", `C:\k\kubelet.exe`},
		{`C:\k\kubelet.exe`, "windows", `C:\k\kubelet.exe`},
		{"localhost/c:/k/x", "windows", `c:\k\x`},
		{"server/share/x.exe", "windows", `\\server\share\x.exe`},
		{"/C:/k/kubelet.exe", "linux", ""},
		{"server/share/x.exe", "linux", ""},
		{"", "linux", ""},
		{"/%zz", "linux", ""},
	} {
		got, err := filePath(c.rest, c.goos)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("file://%s on %s: %q, %v; want %q", c.rest, c.goos, got, err, c.want)
		}
	}
}

func TestADriveIsNotAScheme(t *testing.T) {
	for text, want := range map[string]string{
		`C:\x`: "", "c://x": "", "https://x": "https", "HTTP://x": "http", "/a/b://c": "", "kubelet.exe": "",
	} {
		if got, _, _ := cutScheme(text); got != want {
			t.Errorf("%q: scheme %q, want %q", text, got, want)
		}
	}
}

func TestAFileThatIsBeingWrittenIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.exe")
	if err := os.WriteFile(path, []byte("MZ half"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// The linker writes more after the first look, before the file is read to its end.
	if err := os.WriteFile(path, []byte("MZ half and a bit"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = read(t.Context(), path, before, true, path)
	var changing *ChangingError
	switch {
	case !errors.As(err, &changing):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, changing)
	case changing.Path != path:
		t.Fatalf("changing.Path is %v, want %v", changing.Path, path)
	}
}
