package blobs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// keep puts content into the store and returns its hash.
func keep(t *testing.T, s *Store, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "build.exe")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	hash := hashOf([]byte(content))
	if err := s.Put(t.Context(), path, hash); err != nil {
		t.Fatal(err)
	}
	return hash
}

func open(t *testing.T, limit int64) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "blobs"), limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStoreHasAFileThatWasPut(t *testing.T) {
	s := open(t, 0)
	hash := keep(t, s, "kubelet")
	path, err := s.Path(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	switch {
	case err != nil:
		t.Fatal(err)
	case string(content) != "kubelet":
		t.Fatalf("content is %q, want %q", string(content), "kubelet")
	case !s.Has(hash):
		t.Fatal("s.Has(hash) is false, want true")
	}
	switch content, err := s.Read(hash); {
	case err != nil:
		t.Fatal(err)
	case string(content.Bytes) != "kubelet":
		t.Fatalf("content.Bytes is %q, want %q", string(content.Bytes), "kubelet")
	}
}

func TestMissingFileIsNotHeld(t *testing.T) {
	s := open(t, 0)
	for _, hash := range []string{"", "abc", hashOf(nil), "../" + hashOf(nil), strings.ToUpper(hashOf(nil))} {
		if _, err := s.Path(t.Context(), hash); !errors.Is(err, ErrNotHeld) {
			t.Errorf("%q: the error is %v, want %v", hash, err, ErrNotHeld)
		}
		if _, err := s.Read(hash); !errors.Is(err, ErrNotHeld) {
			t.Errorf("%q: the error is %v, want %v", hash, err, ErrNotHeld)
		}
	}
	if err := s.Put(t.Context(), "anything", "../escape"); err == nil {
		t.Error("kept a file under a name that is no hash")
	}
}

func TestTheBuildMayBeOverwritten(t *testing.T) {
	s := open(t, 0)
	path := filepath.Join(t.TempDir(), "kubelet.exe")
	if err := os.WriteFile(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), path, hashOf([]byte("one"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("two"), 0o600); err != nil { // in place
		t.Fatal(err)
	}
	switch content, err := s.Read(hashOf([]byte("one"))); {
	case err != nil:
		t.Fatal(err)
	case string(content.Bytes) != "one":
		t.Fatalf("content.Bytes is %q, want %q", string(content.Bytes), "one")
	}
}

func TestDamageIsFoundAndRemoved(t *testing.T) {
	s := open(t, 0)
	hash := keep(t, s, "kubelet")
	if err := os.WriteFile(s.path(hash), []byte("kubelot"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Path(t.Context(), hash); !errors.Is(err, ErrNotHeld) {
		t.Fatalf("the error is %v, want %v", err, ErrNotHeld)
	}
	if s.Has(hash) {
		t.Fatal("the damaged file is still there")
	}
}

func TestTheLeastUsedGoFirst(t *testing.T) {
	s := open(t, 30)
	clock := time.Now()
	s.now = func() time.Time { return clock }
	later := func() { clock = clock.Add(time.Hour) }
	a := keep(t, s, strings.Repeat("a", 10))
	later()
	b := keep(t, s, strings.Repeat("b", 10))
	later()
	c := keep(t, s, strings.Repeat("c", 10))
	later()
	if _, err := s.Read(a); err != nil { // counts as used again
		t.Fatal(err)
	}
	later()
	d := keep(t, s, strings.Repeat("d", 10))
	switch {
	case !s.Has(a):
		t.Fatal("s.Has(a) is false, want true")
	case s.Has(b):
		t.Fatal("s.Has(b) is true, want false")
	case !s.Has(c):
		t.Fatal("s.Has(c) is false, want true")
	case !s.Has(d):
		t.Fatal("s.Has(d) is false, want true")
	}
	if _, err := os.Stat(s.stamp(b)); err == nil {
		t.Error("the stamp of a removed file is still there")
	}
}

func TestRecentlyUsedFileStaysWhateverTheLimit(t *testing.T) {
	s := open(t, 5)
	a, b := keep(t, s, "first of the files"), keep(t, s, "second of the files")
	if !s.Has(a) || !s.Has(b) {
		t.Fatal("a file in use was removed")
	}
}

func TestTemporaryFilesOfKilledRunsGo(t *testing.T) {
	s := open(t, 1)
	left := s.path("0123456789ab-1" + temporaryEnding)
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	keep(t, s, "something")
	if _, err := os.Stat(left); err != nil {
		t.Fatal("a file that somebody may be writing was removed")
	}
	s.now = func() time.Time { return time.Now().Add(2 * abandoned) }
	keep(t, s, "something else")
	if _, err := os.Stat(left); err == nil {
		t.Fatal("the abandoned file is still there")
	}
}

// Several runs of swdt, each with its own Store, use one folder that is too small for all
// files: a reader of a file nevertheless reads all of it.
func TestManyAtOnce(t *testing.T) {
	folder := t.TempDir()
	var all sync.WaitGroup
	for run := range 8 {
		all.Go(func() {
			s, err := Open(folder, 1<<20)
			if err != nil {
				t.Error(err)
				return
			}
			s.now = func() time.Time { return time.Now().Add(time.Duration(run) * time.Hour) }
			for i := range 20 {
				content := bytes.Repeat([]byte(fmt.Sprint(i%5, ",")), 100_000)
				path := filepath.Join(folder, fmt.Sprintf("build-%d-%d", run, i))
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Error(err)
					return
				}
				if err := s.Put(t.Context(), path, hashOf(content)); err != nil {
					t.Error(err)
				}
				got, err := s.Read(hashOf(content))
				if err == nil && !bytes.Equal(got.Bytes, content) {
					t.Errorf("run %d read %d other bytes", run, len(got.Bytes))
				}
				got.Close()
				if err != nil && !errors.Is(err, ErrNotHeld) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
