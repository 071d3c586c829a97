package logs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swdt-dev/swdt/internal/inspect/logs"
	"github.com/swdt-dev/swdt/internal/ui"
)

// fileKubelet serves a folder like a kubelet without NodeLogQuery.
type fileKubelet struct{ handler http.Handler }

func (k fileKubelet) NodeLogs(_ context.Context, _, file string, query url.Values, byteRange string) (io.ReadCloser,
	error) {
	request := httptest.NewRequest(http.MethodGet, "/"+file+"?"+query.Encode(), nil)
	if byteRange != "" {
		request.Header.Set("Range", byteRange)
	}
	answer := httptest.NewRecorder()
	k.handler.ServeHTTP(answer, request)
	if answer.Code == http.StatusNotFound {
		return nil, apierrors.NewGenericServerResponse(answer.Code, "get", schema.GroupResource{}, "", "", 0, true)
	}
	if answer.Code >= 300 {
		return nil, errors.New(answer.Result().Status)
	}
	return answer.Result().Body, nil
}

// warnings collects warnings.
type warnings struct {
	ui.Discard
	all []string
}

func (w *warnings) Warn(format string, args ...any) {
	w.all = append(w.all, fmt.Sprintf(format, args...))
}

func TestLogsThroughTheKubelet(t *testing.T) {
	folder := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("kubelet/kubelet.log", strings.Repeat(klog("I", 1, "old")+"\n", 5000)+klog("I", 2, "new")+"\n")
	put("kubelet/kubelet.err.log", klog("E", 3, "bad")+"\n")
	const many = 100_000 // more than may wait in the merger
	put("containerd/containerd.log", strings.Repeat(logrus(2, "runs")+"\n", many))
	put("pods/ns_web_1/app/0.log", "2026-11-20T14:00:00Z stdout F hello\n")
	reported := &warnings{}
	ask := func(o logs.Options) ([]string, error) {
		sink := &shown{}
		m := logs.NewMerger(false, sink)
		in := m.Begin()
		failed := make(chan error, 1)
		go func() {
			failed <- logs.ShowByAPI(t.Context(), fileKubelet{http.FileServer(http.Dir(folder))}, "win1", o,
				m, in, reported)
		}()
		if err := m.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var ends []string
		for _, text := range sink.texts() {
			ends = append(ends, text[strings.LastIndex(text, " ")+1:])
		}
		return ends, <-failed
	}
	if got, err := ask(logs.Options{Sources: []string{"kubelet"}, Tail: 2}); err != nil ||
		!slices.Equal(got, []string{"old", "new", "bad"}) {
		t.Errorf("%q, %v", got, err)
	}
	switch got, err := ask(logs.Options{Sources: []string{"containerd", "kubelet"}, Tail: -1}); {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case len(got) != many+5002:
		t.Errorf("len(got) = %v, want %v: %+v", len(got), many+5002, got)
	case got[4999] != "old":
		t.Errorf("got[4999] = %q, want %q", got[4999], "old")
	case got[len(got)-1] != "bad":
		t.Errorf("got[len(got)-1] = %q, want %q; all of two logs, in order of time: %d lines, %v", got[len(got)-1],
			"bad", len(got), err)
	}
	if got, err := ask(logs.Options{Sources: []string{"pod/ns/web"}, Tail: 2}); err != nil ||
		!slices.Equal(got, []string{"hello"}) {
		t.Errorf("%q, %v", got, err)
	}
	put("pods/notes.txt", "no container's\n")
	if got, err := ask(logs.Options{Sources: []string{`file:C:\var\log\pods\*.txt`}, Tail: 2}); err != nil ||
		!slices.Equal(got, []string{"container's"}) {
		t.Errorf("%q, %v", got, err)
	}
	switch got, err := ask(logs.Options{Sources: []string{"pod/ns/web", "pod/ns/db"}, Tail: 2}); {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case !slices.Equal(got, []string{"hello"}):
		t.Errorf("got = %v, want %v", got, []string{"hello"})
	case len(reported.all) != 1:
		t.Errorf("len(reported.all) = %v, want 1: %+v", len(reported.all), reported.all)
	case !strings.Contains(reported.all[0], "no log of pod/ns/db exists"):
		t.Errorf("reported.all[0] lacks %q:\n%s; one that is not there: %q, %q, %v", "no log of pod/ns/db exists",
			reported.all[0], got, reported.all, err)
	}
	put("other/other.log", "of a service that is in no table\n")
	if got, err := ask(logs.Options{Sources: []string{"other"}, Tail: 2}); err != nil ||
		!slices.Equal(got, []string{"table"}) {
		t.Errorf("%q, %v", got, err)
	}
	// A file in the encoding of PowerShell 5.1: read in part, whole, and filtered on your
	// machine.
	put("wide.log", string(wide(strings.Repeat("alte Zeile\r\n", 9000)+"vor grün\r\nnach 😀\r\n", false)))
	for _, o := range []logs.Options{{Tail: 2}, {Tail: 2, Grep: pattern(t, "grün|😀")}, {Tail: -1},
		{Tail: 2, Since: time.Now().Add(-time.Hour)}} {
		o.Sources = []string{`file:C:\var\log\wide.log`}
		got, err := ask(o)
		switch want := []string{"grün", "😀"}; {
		case err != nil:
			t.Errorf("unexpected error: %v", err)
		case len(got) < 2:
			t.Errorf("len(got) = %v, want at least 2: %+v", len(got), got)
		case !slices.Equal(got[len(got)-2:], want):
			t.Errorf("got[len(got)-2:] = %v, want %v", got[len(got)-2:], want)
		case o.Tail > 0 && len(got) > 2:
			t.Errorf("o.Tail > 0 && len(got) > 2 is wrong; UTF-16, the last %d: %d lines, %.80q, %v", o.Tail,
				len(got), got, err)
		}
	}
	put("short.log", string(wide("eine Zeile\n", true)))
	if got, err := ask(logs.Options{Sources: []string{`file:C:\var\log\short.log`}, Tail: 2}); err != nil ||
		!slices.Equal(got, []string{"Zeile"}) {
		t.Errorf("%q, %v", got, err)
	}
	// Rotated parts are read as far as --since goes back.
	put("other/other.log", klog("I", 3, "now")+"\n")
	put("other/other-20261129-010500.log", klog("I", 2, "rotated")+"\n")
	put("other/other.log.2", "I"+time.Now().UTC().Add(-5*time.Hour).Format("0102 15:04:05.000000")+" 1 x.go:1] older\n")
	if got, err := ask(logs.Options{Sources: []string{"other"}, Tail: -1, Since: time.Now().Add(-3 * time.Hour)}); err != nil ||
		!slices.Equal(got, []string{"rotated", "now"}) {
		t.Errorf("%q, %v", got, err)
	}
	_, err := ask(logs.Options{Sources: []string{"docker"}, Tail: 2})
	var disabled *logs.QueryDisabledError
	if !errors.As(err, &disabled) || !strings.Contains(err.Error(), "enableSystemLogQuery: true") {
		t.Errorf("%v", err)
	}
	_, err = ask(logs.Options{Sources: []string{`file:C:\k\x.log`}, Tail: 2})
	var outside *logs.NotServedError
	if !errors.As(err, &outside) {
		t.Errorf("%v", err)
	}
}
