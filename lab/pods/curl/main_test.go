package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// format is the format of curl that the smoke test requests.
const format = `\n%{http_code} %{time_namelookup}`

func TestRequests(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.PostFormValue("msg"))
	}))
	defer server.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		args   []string
		code   int
		stdout string // its beginning
	}{
		{"an echo", []string{"--insecure", "--data", "msg=hello", server.URL}, 0, "hello\n200 0.0"},
		{"a certificate of nobody", []string{server.URL}, refused, "\n000 0.0"},
		{"a closed port", []string{"http://" + closed.Addr().String()}, refused, "\n000 0.0"},
		{"a name that does not exist", []string{"http://name.invalid/"}, unresolved, "\n000 0.000000"},
		{"a version", []string{"--version"}, 0, "curl "},
		{"no URL", nil, usage, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			code := run(append([]string{"--silent", "--show-error", "--connect-timeout", "5", "--max-time", "10",
				"--write-out", format}, test.args...), strings.NewReader(""), &stdout, &stderr)
			if code != test.code || !strings.HasPrefix(stdout.String(), test.stdout) {
				t.Errorf("exit code %d, want %d; stdout %q, stderr %q", code, test.code, stdout.String(), stderr.String())
			}
		})
	}
}

// A file is written from stdin, and read again.
func TestFiles(t *testing.T) {
	file := "file://" + filepath.ToSlash(filepath.Join(t.TempDir(), "file"))
	for _, step := range []struct {
		args   []string
		code   int
		stdout string
	}{
		{[]string{file}, unreadable, ""},
		{[]string{"--upload-file", "-", file}, 0, ""},
		{[]string{file}, 0, "hello"},
		{[]string{"--upload-file", "-", file + "/below"}, unwritable, ""},
	} {
		var stdout, stderr strings.Builder
		if code := run(step.args, strings.NewReader("hello"), &stdout, &stderr); code != step.code ||
			stdout.String() != step.stdout {
			t.Errorf("%q: exit code %d, %q, %s", step.args, code, stdout.String(), stderr.String())
		}
	}
}
