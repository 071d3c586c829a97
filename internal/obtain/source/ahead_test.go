package source_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

type refusing struct{ asked int }

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r.asked++
	return nil, errors.New("nobody may be asked")
}

// A later request gets the file that was read ahead. As long as the file looks unchanged,
// it is not read again.
func TestALocalFileIsReadAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.exe")
	anHourAgo := time.Now().Add(-time.Hour)
	write := func(content string) {
		if err := errors.Join(os.WriteFile(path, []byte(content), 0o600),
			os.Chtimes(path, anHourAgo, anHourAgo)); err != nil {
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
		var ahead []source.Binary
		then := func(b source.Binary) { ahead = append(ahead, b) }
		set.Ahead(t.Context(), source.Request{URL: path}, then)
		set.Ahead(t.Context(), source.Request{URL: path + ".missing"}, then)
		set.Ahead(t.Context(), source.Request{URL: "https://example.invalid/kubelet.exe"}, then)
		synctest.Wait()
		if len(ahead) != 1 || ahead[0] != want {
			t.Errorf("read ahead: %+v", ahead)
		}
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
