package source_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

func TestLocalForms(t *testing.T) {
	content := kubelet("one")
	path := place(t, "my kubelet.exe", content)
	forms := []string{path, "file://" + filepath.ToSlash(path)}
	if runtime.GOOS != "windows" {
		forms = append(forms, "FILE://localhost"+path, "file://"+strings.ReplaceAll(path, " ", "%20"))
	}
	for _, form := range forms {
		binary, err := source.Obtain(t.Context(), source.Request{URL: form, SHA256: strings.ToUpper(sum(content)),
			Executable: true}, ui.Discard{})
		switch {
		case err != nil:
			t.Errorf("%s: %v", form, err)
		case binary.Path != path:
			t.Errorf("%s: binary.Path is %v, want %v", form, binary.Path, path)
		case binary.SHA256 != sum(content):
			t.Errorf("%s: binary.SHA256 is %v, want %v", form, binary.SHA256, sum(content))
		}
		if !source.IsLocal(form) {
			t.Errorf("%s is not local", form)
		}
	}
	if source.IsLocal("https://x/y") || !source.IsLocal(`C:\out\kubelet.exe`) {
		t.Error("IsLocal")
	}
}

func TestBadSources(t *testing.T) {
	folder := t.TempDir()
	for url, want := range map[string]string{
		"":                             "sourceURL is empty",
		"ftp://host/x.exe":             "ftp:// is not supported",
		"http:///x.exe":                "not a valid URL",
		"https://user:secret@ho st/x":  "not a valid URL",
		"file://":                      "the path is missing",
		"file:///%zz":                  "write % as %25",
		folder:                         "is a folder: name the file in it as sourceURL",
		filepath.Join(folder, "none"):  "does not exist: build it first",
		filepath.Join(folder, "$NONE"): "set the variable in it",
	} {
		_, err := source.Obtain(t.Context(), source.Request{URL: url}, ui.Discard{})
		switch {
		case err == nil:
			t.Errorf("%q: no error, want one", url)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%q: err.Error() lacks %q:\n%s", url, want, err.Error())
		case strings.Contains(err.Error(), "secret"):
			t.Errorf("%q: err.Error() contains %q:\n%s", url, "secret", err.Error())
		}
	}
	_, err := source.Obtain(t.Context(), source.Request{URL: filepath.Join(folder, "none")}, ui.Discard{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error is %v, want %v", err, fs.ErrNotExist)
	}
}

func TestWrongHash(t *testing.T) {
	path := place(t, "kubelet.exe", kubelet("one"))
	want := strings.Repeat("ab", 32)
	_, err := source.Obtain(t.Context(), source.Request{URL: path, SHA256: want}, ui.Discard{})
	var mismatch *source.HashMismatchError
	switch {
	case !errors.As(err, &mismatch):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, mismatch)
	case mismatch.Want != want:
		t.Fatalf("mismatch.Want is %v, want %v", mismatch.Want, want)
	case mismatch.Got != sum(kubelet("one")):
		t.Fatalf("mismatch.Got is %v, want %v", mismatch.Got, sum(kubelet("one")))
	}
}

func TestAFileThatChangesIsReadAgain(t *testing.T) {
	set := source.NewSet(source.Options{})
	path := place(t, "kubelet.exe", kubelet("one"))
	first, err := set.Obtain(t.Context(), source.Request{URL: path}, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Unchanged(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, kubelet("two and longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	var changing *source.ChangingError
	if err := first.Unchanged(); !errors.As(err, &changing) {
		t.Fatalf("the error is %v, a %T, want a %T", err, err, changing)
	}
	second, err := set.Obtain(t.Context(), source.Request{URL: path}, ui.Discard{})
	switch {
	case err != nil:
		t.Fatal(err)
	case second.SHA256 == first.SHA256:
		t.Fatalf("second.SHA256 is %v, want anything but %v", second.SHA256, first.SHA256)
	}
}

func TestAFileIsReadOnceForManyNodes(t *testing.T) {
	set := source.NewSet(source.Options{})
	path := place(t, "kubelet.exe", kubelet("one"))
	stamp := time.Now().Add(-time.Hour).Truncate(time.Second)
	swap := func(text string) {
		if err := os.WriteFile(path, kubelet(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	swap("one")
	first, err := set.Obtain(t.Context(), source.Request{URL: path, Executable: true}, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	swap("two") // same size and time: only reading the file would show the difference
	for range 20 {
		again, err := set.Obtain(t.Context(), source.Request{URL: path, Executable: true}, ui.Discard{})
		if err != nil || again != first {
			t.Fatalf("read again: %+v, %v", again, err)
		}
	}
}

func TestCancelledReadIsNotAChangedFile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := place(t, "kubelet.exe", kubelet("one"))
	if _, err := source.Obtain(ctx, source.Request{URL: path}, ui.Discard{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("the error is %v, want %v", err, context.Canceled)
	}
}
