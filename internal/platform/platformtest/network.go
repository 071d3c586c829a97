package platformtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func testNetwork(t *testing.T, fixture func(*testing.T) Fixture) {
	t.Run("HTTPGet", func(t *testing.T) {
		f := fixture(t)
		need(t, f.ServeHTTP != nil, "an HTTP server for the test")
		mux := http.NewServeMux()
		mux.HandleFunc("GET /ok", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
		mux.HandleFunc("GET /bad", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "not ok")
		})
		mux.HandleFunc("GET /away", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/ok", http.StatusFound)
		})
		mux.HandleFunc("GET /much", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 2<<20))
		})
		root := f.ServeHTTP(t, mux)
		get := func(path string) (int, string) {
			t.Helper()
			status, body, err := f.Platform.Network.HTTPGet(t.Context(), root+path)
			check(t, err)
			return status, string(body)
		}
		switch status, body := get("/ok"); {
		case status != 200:
			t.Errorf("status is %v, want 200", status)
		case body != "ok":
			t.Errorf("body is %q, want %q", body, "ok")
		}
		switch status, body := get("/bad"); {
		case status != 500:
			t.Errorf("status is %v, want 500", status)
		case body != "not ok":
			t.Errorf("body is %q, want %q", body, "not ok")
		}
		if status, _ := get("/away"); status != 302 {
			t.Errorf("a redirect was followed: %d", status)
		}
		if _, body := get("/much"); len(body) != 1<<20 {
			t.Errorf("%d bytes", len(body))
		}
	})
	t.Run("NobodyAnswers", func(t *testing.T) {
		f := fixture(t)
		if _, _, err := f.Platform.Network.HTTPGet(t.Context(), "http://127.0.0.1:1/"); err == nil {
			t.Error("port 1 answered")
		}
		if _, err := f.Platform.Network.DialPipe(t.Context(), `\\.\pipe\swdt-nobody`); !errors.Is(err,
			fault.ErrNotExist) {
			t.Errorf("pipe: %v", err)
		}
	})
	t.Run("Reach", func(t *testing.T) { testReach(t, fixture(t)) })
	t.Run("Connect", func(t *testing.T) { testConnect(t, fixture(t)) })
	t.Run("Resolve", func(t *testing.T) { testResolve(t, fixture(t)) })
	t.Run("Listeners", func(t *testing.T) { testListeners(t, fixture(t)) })
	t.Run("DialPipe", func(t *testing.T) {
		f := fixture(t)
		need(t, f.ServePipe != nil, "a pipe server for the test")
		path := f.ServePipe(t)
		for range 3 {
			conn, err := f.Platform.Network.DialPipe(t.Context(), path)
			check(t, err)
			_, err = conn.Write([]byte("hello"))
			check(t, err)
			answer := make([]byte, 5)
			_, err = io.ReadFull(conn, answer)
			check(t, err)
			if string(answer) != "hello" {
				t.Errorf("answer is %q, want %q", string(answer), "hello")
			}
			f.expectRunning(t, conn)
			check(t, conn.Close())
		}
	})
}

// expectRunning checks that a running process serves the other end of a pipe.
func (f Fixture) expectRunning(t *testing.T, conn net.Conn) {
	t.Helper()
	pid, err := platform.PipeServer(conn)
	check(t, err)
	all, err := f.Platform.Processes.List(t.Context())
	check(t, err)
	if !slices.ContainsFunc(all, func(p platform.Process) bool { return p.PID == pid }) {
		t.Errorf("process %d serves the pipe, and does not run", pid)
	}
}

// serve makes the machine listen on loopback and returns the URL.
func (f Fixture) serve(t *testing.T) *url.URL {
	t.Helper()
	need(t, f.ServeHTTP != nil, "an HTTP server for the test")
	at, err := url.Parse(f.ServeHTTP(t, http.NotFoundHandler()))
	check(t, err)
	return at
}

func testReach(t *testing.T, f Fixture) {
	at := f.serve(t)
	localhost := net.JoinHostPort("localhost", at.Port())
	for address, want := range map[string]platform.ReachOutcome{
		at.Host: platform.Reached, localhost: platform.Reached, "127.0.0.1:1": platform.Refused,
		"no-such-name.invalid:80": platform.NameNotFound,
	} {
		got, err := f.Platform.Network.Reach(t.Context(), address, waitLimit)
		check(t, err)
		reached := want == platform.Reached
		switch {
		case got.Outcome != want:
			t.Errorf("%s: got.Outcome is %v, want %v", address, got.Outcome, want)
		case reached != (got.Detail == ""):
			t.Errorf("%s: reached is %v, want %v", address, reached, (got.Detail == ""))
		case got.Took < 0:
			t.Errorf("%s: got.Took is %v, want at least 0", address, got.Took)
		}
		if reached != (got.Source == "127.0.0.1") {
			t.Errorf("%s: connected from %q", address, got.Source)
		}
		if reached && got.Address != at.Host {
			t.Errorf("%s: connected to %s, want %s", address, got.Address, at.Host)
		}
	}
	if got, err := f.Platform.Network.Reach(t.Context(), "no port", waitLimit); err == nil {
		t.Errorf("an address without a port: %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := f.Platform.Network.Reach(ctx, at.Host, waitLimit); !errors.Is(err, context.Canceled) {
		t.Errorf("after it was cancelled: %+v, %v", got, err)
	}
}

func testResolve(t *testing.T, f Fixture) {
	got, err := f.Platform.Network.Resolve(t.Context(), "localhost")
	if err != nil || !slices.Contains(got, "127.0.0.1") {
		t.Errorf("localhost: %v, %v", got, err)
	}
	got, err = f.Platform.Network.Resolve(t.Context(), "10.11.12.13")
	if err != nil || !slices.Equal(got, []string{"10.11.12.13"}) {
		t.Errorf("an address: %v, %v", got, err)
	}
	if got, err := f.Platform.Network.Resolve(t.Context(), "no-such-name.invalid"); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("an invalid name: %v, %v", got, err)
	}
}

func testListeners(t *testing.T, f Fixture) {
	at := f.serve(t)
	all, err := f.Platform.Network.Listeners(t.Context())
	check(t, err)
	if !slices.IsSortedFunc(all, func(a, b platform.Listener) int { return int(a.Port) - int(b.Port) }) {
		t.Errorf("not sorted: %+v", all)
	}
	i := slices.IndexFunc(all, func(l platform.Listener) bool { return l.Address == at.Host })
	if i < 0 || fmt.Sprint(all[i].Port) != at.Port() {
		t.Fatalf("%s is not among %+v", at.Host, all)
	}
	need(t, f.Has.PortOwner, "the owner of a port")
	owner, err := f.Platform.Processes.Open(all[i].PID)
	check(t, err)
	check(t, owner.Close())
}
