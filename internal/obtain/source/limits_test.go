package source_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// A private store redirects to a public server, which must not see the token in the private
// store's address.
func TestARedirectDoesNotSayWhereItCameFrom(t *testing.T) {
	content := program("a")
	to := serve(t, content)
	from := serve(t, nil)
	from.set(func(s *server) {
		s.first = func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to.URL+"/x.exe", http.StatusFound)
		}
	})
	mustObtain(t, caches(t)(), strings.Replace(from.url(), "http://", "http://user:pw@", 1), "", content)
	asked := to.asked()
	if len(asked) != 1 {
		t.Fatalf("asked %d times", len(asked))
	}
	for name, values := range asked[0].Header {
		switch text := strings.Join(values, " "); {
		case strings.Contains(text, "secret"):
			t.Errorf("%s: text contains %q:\n%s", name, "secret", text)
		case strings.Contains(text, from.URL):
			t.Errorf("%s: text contains %q:\n%s", name, from.URL, text)
		case name == "Authorization":
			t.Errorf("%s: name is %q, want anything but %q", name, name, "Authorization")
		}
	}
}

func TestADownloadIsBounded(t *testing.T) {
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for block := make([]byte, 64<<10); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	announced := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000000000")
		_, _ = w.Write([]byte("MZ"))
	}
	for name, handle := range map[string]http.HandlerFunc{"without end": endless, "announced": announced} {
		for _, hash := range []string{"", strings.Repeat("e", 64)} {
			t.Run(name+" "+hash, func(t *testing.T) {
				s := httptest.NewServer(handle)
				defer s.Close()
				cache := t.TempDir()
				set := source.NewSet(source.Options{Cache: cache, Limits: source.Limits{Size: 1 << 20}})
				_, err := set.Obtain(t.Context(), source.Request{URL: s.URL + "/x.exe", SHA256: hash}, ui.Discard{})
				var large *source.TooLargeError
				switch {
				case !errors.As(err, &large):
					t.Fatalf("the error is %v, a %T, want a %T", err, err, large)
				case !strings.Contains(err.Error(), source.SizeVariable):
					t.Fatalf("err.Error() lacks %q:\n%s", source.SizeVariable, err.Error())
				}
				if left, err := filepath.Glob(cache + "/*/*.part"); err != nil || len(left) != 0 {
					t.Errorf("left %v, %v", left, err)
				}
			})
		}
	}
}

func TestOneRequestCanBeBoundedMoreTightly(t *testing.T) {
	s := serve(t, program("a"))
	_, err := caches(t)().Obtain(t.Context(), source.Request{URL: s.url(), MaxSize: 1000}, ui.Discard{})
	var large *source.TooLargeError
	switch {
	case !errors.As(err, &large):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, large)
	case large.Limit != 1000:
		t.Fatalf("large.Limit is %v, want 1000", large.Limit)
	}
}

// A server that sends a byte now and then never stalls.
func TestASlowDownloadIsGivenUp(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("M")); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}))
	t.Cleanup(s.Close)
	// The limits count from before the connection, which takes a while on a busy machine.
	for variable, limits := range map[string]source.Limits{
		source.RateVariable:  {Stall: 2 * time.Second, Rate: 1 << 20},
		source.TotalVariable: {Total: 5 * time.Second},
	} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			set := source.NewSet(source.Options{Cache: t.TempDir(), Limits: limits})
			_, err := set.Obtain(ctx, source.Request{URL: s.URL + "/x.exe"}, ui.Discard{})
			var cut *source.TruncatedError
			switch {
			case !errors.As(err, &cut):
				t.Fatalf("the error is %v, a %T, want a %T", err, err, cut)
			case !strings.Contains(err.Error(), variable):
				t.Fatalf("err.Error() lacks %q:\n%s", variable, err.Error())
			}
		})
	}
}

func TestLimitsOfTheEnvironment(t *testing.T) {
	s := serve(t, program("a"))
	for _, c := range []struct {
		variable, text, fails string // fails: part of the error; "": no error
	}{
		{source.SizeVariable, "100K", "beyond the limit"},
		{source.SizeVariable, "1GiB", ""},
		{source.SizeVariable, "0", ""},
		{source.SizeVariable, "much", source.SizeVariable},
		{source.SizeVariable, "-5", source.SizeVariable},
		{source.SizeVariable, "99999999999T", source.SizeVariable},
		{source.StallVariable, "soon", source.StallVariable},
		{source.TotalVariable, "1h", ""},
		{source.RateVariable, "1 MB", ""},
	} {
		t.Run(c.variable+"="+c.text, func(t *testing.T) {
			t.Setenv(c.variable, c.text)
			set := source.NewSet(source.Options{Cache: t.TempDir()})
			_, err := set.Obtain(t.Context(), source.Request{URL: s.url()}, ui.Discard{})
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %v", err)
			}
		})
	}
	// Files on this machine have no such limits.
	t.Setenv(source.SizeVariable, "1")
	path := filepath.Join(t.TempDir(), "x.exe")
	if err := os.WriteFile(path, program("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := source.NewSet(source.Options{}).Obtain(t.Context(), source.Request{URL: path},
		ui.Discard{}); err != nil {
		t.Error(err)
	}
}
