package hashcache_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// An ordinary user restores the size and the time of a file that the user has
// changed.
func TestFilesThatOthersMayChangeAreHashedAnew(t *testing.T) {
	m := simulated.New(simulated.Options{Preset: simulated.Minimal})
	defer m.Close()
	user, admin := m.SpawnAs("user.exe", simulated.User).Platform.Files, m.Process("agent").Files
	const path = `C:\ProgramData\his.exe`
	when := time.Now().Add(-time.Hour)
	write := func(text string) {
		w, err := user.Create(path, platform.CreateTruncate)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(w, text)
		if err := errors.Join(err, w.SetModified(when), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	cache := hashcache.Load(admin)
	for _, text := range []string{"good", "evil"} {
		write(text)
		sum := sha256.Sum256([]byte(text))
		got, _, err := cache.Hash(t.Context(), path)
		switch {
		case err != nil:
			t.Errorf("%s: %v", text, err)
		case got != hex.EncodeToString(sum[:]):
			t.Errorf("%s: got is %v, want %v", text, got, hex.EncodeToString(sum[:]))
		}
		cache.Learn(path, got, int64(len(text)), when)
		cache.LearnVersion(path, "v1.0.0")
		if version, known := cache.Version(path); known {
			t.Errorf("%s: the version %s is believed", text, version)
		}
	}
}
