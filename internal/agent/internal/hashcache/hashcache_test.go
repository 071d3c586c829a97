package hashcache_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// counting counts how often each file is opened for reading.
type counting struct {
	platform.Files
	opened map[string]int
	during func() // called when a file has been opened
}

func (c *counting) Open(path string) (io.ReadSeekCloser, error) {
	c.opened[path]++
	file, err := c.Files.Open(path)
	if c.during != nil && path != layout.HashCache {
		c.during()
	}
	return file, err
}

func machine(t *testing.T) (*simulated.Machine, *counting) {
	t.Helper()
	m := simulated.New(simulated.Options{Preset: simulated.Minimal})
	t.Cleanup(m.Close)
	files := &counting{Files: m.Process("agent").Files, opened: map[string]int{}}
	if err := files.MakeFolder(layout.Root); err != nil {
		t.Fatal(err)
	}
	return m, files
}

// put writes a file with a last change one hour ago.
func put(t *testing.T, files platform.Files, path, content string) {
	t.Helper()
	file, err := files.Create(path, platform.CreateTruncate)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(file, content)
	err = errors.Join(err, file.Close(), files.SetModified(path, time.Now().Add(-time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, c *hashcache.Cache, path, content string) {
	t.Helper()
	sha, size, err := c.Hash(t.Context(), path)
	sum := sha256.Sum256([]byte(content))
	switch {
	case err != nil:
		t.Fatalf("%s: %v", path, err)
	case sha != hex.EncodeToString(sum[:]):
		t.Fatalf("%s: sha is %v, want %v", path, sha, hex.EncodeToString(sum[:]))
	case size != int64(len(content)):
		t.Fatalf("%s: size is %v, want %v", path, size, int64(len(content)))
	}
}

func TestAKnownFileIsNotReadAgain(t *testing.T) {
	_, files := machine(t)
	put(t, files, `C:\a`, "one")
	c := hashcache.Load(files)
	want(t, c, `C:\a`, "one")
	want(t, c, `c:\A`, "one")
	if err := files.Rename(`C:\a`, `C:\b`, false); err != nil {
		t.Fatal(err)
	}
	want(t, c, `C:\b`, "one")
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	want(t, hashcache.Load(files), `C:\b`, "one")
	if files.opened[`C:\a`] != 1 || files.opened[`c:\A`]+files.opened[`C:\b`] != 0 {
		t.Fatalf("read %v", files.opened)
	}
}

// On ReFS, the lower halves of the IDs of several files may be equal.
func TestFilesOfReFS(t *testing.T) {
	m := simulated.New(simulated.Options{Preset: simulated.Minimal, ReFS: true})
	t.Cleanup(m.Close)
	files := &counting{Files: m.Process("agent").Files, opened: map[string]int{}}
	if err := files.MakeFolder(layout.Root); err != nil {
		t.Fatal(err)
	}
	put(t, files, `C:\a`, "one")
	put(t, files, `C:\b`, "two")
	if err := files.SetModified(`C:\a`, time.Now().Add(-time.Hour).Truncate(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := files.SetModified(`C:\b`, time.Now().Add(-time.Hour).Truncate(time.Second)); err != nil {
		t.Fatal(err)
	}
	c := hashcache.Load(files)
	want(t, c, `C:\a`, "one")
	want(t, c, `C:\b`, "two")
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	again := hashcache.Load(files)
	want(t, again, `C:\a`, "one")
	want(t, again, `C:\b`, "two")
	if files.opened[`C:\a`] != 1 || files.opened[`C:\b`] != 1 {
		t.Fatalf("read %v", files.opened)
	}
}

// A deduplicated file is a file.
func TestADeduplicatedFileIsRemembered(t *testing.T) {
	m, files := machine(t)
	put(t, files, `C:\a`, "one")
	if err := m.Reparse(`C:\a`, simulated.TagDedup); err != nil {
		t.Fatal(err)
	}
	c := hashcache.Load(files)
	want(t, c, `C:\a`, "one")
	want(t, c, `C:\a`, "one")
	if files.opened[`C:\a`] != 1 {
		t.Fatalf("read %v", files.opened)
	}
}

func TestAChangedFileIsReadAgain(t *testing.T) {
	_, files := machine(t)
	c := hashcache.Load(files)
	put(t, files, `C:\a`, "one")
	want(t, c, `C:\a`, "one")
	put(t, files, `C:\a`, "three") // the same file, another size
	want(t, c, `C:\a`, "three")
	put(t, files, `C:\a`, "seven") // the same size, another time
	want(t, c, `C:\a`, "seven")
	if err := files.Remove(`C:\a`); err != nil {
		t.Fatal(err)
	}
	put(t, files, `C:\a`, "eight") // another file
	want(t, c, `C:\a`, "eight")
}

// A file can change twice within one tick of the clock.
func TestAFreshFileIsNotRemembered(t *testing.T) {
	_, files := machine(t)
	c := hashcache.Load(files)
	put(t, files, `C:\a`, "one")
	if err := files.SetModified(`C:\a`, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	want(t, c, `C:\a`, "one")
	want(t, c, `C:\a`, "one")
	if files.opened[`C:\a`] != 2 {
		t.Fatalf("read %v", files.opened)
	}
}

func TestAFileThatChangesWhileItIsReadIsNotRemembered(t *testing.T) {
	m, files := machine(t)
	c := hashcache.Load(files)
	put(t, files, `C:\a`, "one")
	files.during = func() {
		other := m.Process("other").Files
		if err := other.Rename(`C:\a`, `C:\old`, false); err != nil {
			t.Error(err)
		}
		put(t, other, `C:\a`, "two")
	}
	if _, _, err := c.Hash(t.Context(), `C:\a`); err != nil {
		t.Fatal(err)
	}
	files.during = nil
	want(t, c, `C:\a`, "two")
}

// A file that was read back while it was written need not be read again; if it
// has changed since, it must be.
func TestLearnedHashIsUsedUntilTheFileChanges(t *testing.T) {
	_, files := machine(t)
	c := hashcache.Load(files)
	hour := time.Now().Add(-time.Hour)
	sum := sha256.Sum256([]byte("one"))
	learn := func(modified time.Time) {
		put(t, files, `C:\a`, "one")
		if err := files.SetModified(`C:\a`, modified); err != nil {
			t.Fatal(err)
		}
		c.Learn(`C:\a`, hex.EncodeToString(sum[:]), 3, hour)
		files.opened[`C:\a`] = 0
	}
	learn(hour)
	want(t, c, `C:\a`, "one")
	if files.opened[`C:\a`] != 0 {
		t.Error("what was read back is read again")
	}
	put(t, files, `C:\a`, "two") // of the same size
	want(t, c, `C:\a`, "two")

	learn(hour.Add(time.Second)) // another process wrote it since
	want(t, c, `C:\a`, "one")
	if files.opened[`C:\a`] != 1 {
		t.Error("a file with another time of change was believed")
	}

	c.Learn(`C:\a`, hex.EncodeToString(sum[:]), 4, hour.Add(time.Second))
	files.opened[`C:\a`] = 0
	want(t, c, `C:\a`, "one")
	if files.opened[`C:\a`] != 1 {
		t.Error("a file of another size was believed")
	}

	now := time.Now().Add(time.Minute) // not settled
	if err := files.SetModified(`C:\a`, now); err != nil {
		t.Fatal(err)
	}
	c.Learn(`C:\a`, hex.EncodeToString(sum[:]), 3, now)
	want(t, c, `C:\a`, "one")
	if files.opened[`C:\a`] != 2 {
		t.Error("a file that has just changed was believed")
	}
	c.Learn(`C:\nothing`, "", 0, hour)
}

func TestHashFails(t *testing.T) {
	_, files := machine(t)
	c := hashcache.Load(files)
	if _, _, err := c.Hash(t.Context(), `C:\none`); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("the error is %v, want %v", err, fault.ErrNotExist)
	}
	if _, _, err := c.Hash(t.Context(), `C:\Windows`); !errors.Is(err, fault.ErrIsDirectory) {
		t.Errorf("the error is %v, want %v", err, fault.ErrIsDirectory)
	}
	put(t, files, `C:\a`, "one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.Hash(ctx, `C:\a`); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want %v", err, context.Canceled)
	}
}

func TestADamagedCacheIsAnEmptyOne(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for name, content := range map[string]string{
		"nothing":       "",
		"no JSON":       "\x00\x01",
		"half":          `{"entries":[{"path":"C:\\a","si`,
		"another shape": `[1,2]`,
		"a short hash":  `{"entries":[{"path":"C:\\a","volume":1,"index":1,"size":3,"sha256":"ab"}]}`,
		"no path":       `{"entries":[{"volume":1,"index":1,"size":3,"sha256":"` + sum + `"}]}`,
		"too long":      `{"entries":[` + strings.Repeat(" ", 2<<20) + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, files := machine(t)
			put(t, files, layout.HashCache, content)
			put(t, files, `C:\a`, "one")
			c := hashcache.Load(files)
			want(t, c, `C:\a`, "one")
			if err := c.Save(); err != nil {
				t.Fatal(err)
			}
			files.opened = map[string]int{}
			want(t, hashcache.Load(files), `C:\a`, "one")
			if files.opened[`C:\a`] != 0 {
				t.Error("it was not repaired")
			}
		})
	}
}

func TestSaveWritesOnlyNews(t *testing.T) {
	m, files := machine(t)
	put(t, files, `C:\a`, "one")
	if err := hashcache.Load(files).Save(); err != nil {
		t.Fatal(err)
	}
	c := hashcache.Load(files)
	want(t, c, `C:\a`, "one")
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	m.ForgetOperations()
	again := hashcache.Load(files)
	want(t, again, `C:\a`, "one")
	if err := errors.Join(again.Save(), c.Save()); err != nil {
		t.Fatal(err)
	}
	if ops := m.Operations(); len(ops) != 0 {
		t.Fatalf("did %v", ops)
	}
}

func TestSavePrunesAndBounds(t *testing.T) {
	_, files := machine(t)
	c := hashcache.Load(files)
	put(t, files, `C:\gone`, "gone")
	want(t, c, `C:\gone`, "gone")
	for i := range 300 {
		path := fmt.Sprintf(`C:\f%d`, i)
		put(t, files, path, path)
		want(t, c, path, path)
	}
	want(t, c, `C:\f0`, `C:\f0`) // the oldest, but just used
	if err := errors.Join(files.Remove(`C:\gone`), c.Save()); err != nil {
		t.Fatal(err)
	}
	stored, err := files.Open(layout.HashCache)
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Close()
	text, err := io.ReadAll(stored)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), `"path"`); n != 256 {
		t.Errorf("%d entries", n)
	}
	for path, kept := range map[string]bool{`gone`: false, `f0`: true, `f1`: false, `f299`: true} {
		if strings.Contains(string(text), `"C:\\`+path+`"`) != kept {
			t.Errorf("%s kept: %v", path, !kept)
		}
	}
}

func TestSaveThatFailsLeavesTheOldCache(t *testing.T) {
	m, files := machine(t)
	put(t, files, `C:\a`, "one")
	c := hashcache.Load(files)
	want(t, c, `C:\a`, "one")
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	put(t, files, `C:\b`, "two")
	want(t, c, `C:\b`, "two")
	m.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpWrite {
			return simulated.DiskFull()
		}
		return simulated.Continue()
	})
	if err := c.Save(); !errors.Is(err, fault.ErrDiskFull) {
		t.Fatalf("the error is %v, want %v", err, fault.ErrDiskFull)
	}
	m.OnOperation(nil)
	files.opened = map[string]int{}
	want(t, hashcache.Load(files), `C:\a`, "one")
	list, err := files.List(layout.Root)
	switch {
	case err != nil:
		t.Fatal(err)
	case files.opened[`C:\a`] != 0:
		t.Fatalf("read %v, left %v, %v", files.opened, list, err)
	case len(list) != 1:
		t.Fatalf("list has %d elements, want 1: %v", len(list), list)
	}
}
