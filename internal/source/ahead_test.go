package source_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

type refusing struct{ asked int }

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r.asked++
	return nil, errors.New("nobody may be asked")
}

// Whoever asks later gets what was read ahead: as long as the file looks the same,
// nobody reads it again.
func TestALocalFileIsReadAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.exe")
	then := time.Now().Add(-time.Hour)
	write := func(content string) {
		if err := errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chtimes(path, then, then)); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	want, err := source.Obtain(t.Context(), source.Request{URL: path}, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		network := &refusing{}
		set := source.NewSet(source.Options{HTTP: &http.Client{Transport: network}})
		set.Ahead(t.Context(), source.Request{URL: path})
		set.Ahead(t.Context(), source.Request{URL: path + ".missing"})
		set.Ahead(t.Context(), source.Request{URL: "https://example.invalid/kubelet.exe"})
		synctest.Wait()
		write("two")
		got, err := set.Obtain(t.Context(), source.Request{URL: path}, ui.Discard{})
		if err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		if network.asked != 0 {
			t.Errorf("%d requests were made ahead", network.asked)
		}
	})
}
