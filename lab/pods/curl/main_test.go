package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
				"--write-out", format}, test.args...), &stdout, &stderr)
			if code != test.code || !strings.HasPrefix(stdout.String(), test.stdout) {
				t.Errorf("exit code %d, want %d; stdout %q, stderr %q", code, test.code, stdout.String(), stderr.String())
			}
		})
	}
}
