package qmp

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reading answers as an agent whose file has these parts; the last one ends it, unless endless.
func reading(parts []string, endless bool) func(string, int64, io.Writer) {
	next := 0
	return func(command string, id int64, out io.Writer) {
		switch command {
		case "guest-sync-delimited":
			_, _ = fmt.Fprintf(out, "\xff{\"return\": %d}\n", id)
		case "guest-file-open":
			_, _ = io.WriteString(out, `{"return": 1000}`+"\n")
		case "guest-file-close":
			_, _ = io.WriteString(out, `{"return": {}}`+"\n")
		case "guest-file-read":
			text := parts[min(next, len(parts)-1)]
			next++
			_, _ = fmt.Fprintf(out, `{"return": {"count": %d, "buf-b64": %q, "eof": %t}}`+"\n",
				len(text), base64.StdEncoding.EncodeToString([]byte(text)), next >= len(parts) && !endless)
		}
	}
}

// A file is read in the parts that the guest sends, and a hostile guest cannot send without end.
func TestReadFile(t *testing.T) {
	refused := func(command string, id int64, out io.Writer) {
		if command == "guest-sync-delimited" {
			_, _ = fmt.Fprintf(out, "\xff{\"return\": %d}\n", id)
			return
		}
		_, _ = io.WriteString(out, `{"error": {"class": "GenericError", "desc": "no such file"}}`+"\n")
	}
	for name, test := range map[string]struct {
		answer func(string, int64, io.Writer)
		want   string
		err    error
	}{
		"one part":        {reading([]string{"abc"}, false), "abc", nil},
		"parts":           {reading([]string{"ab", "c", ""}, false), "abc", nil},
		"empty":           {reading([]string{""}, false), "", nil},
		"without its end": {reading([]string{"abc", ""}, true), "abc", nil},
		"too long":        {reading([]string{"abcdefghi"}, false), "", errReply},
		"endless":         {reading([]string{"a"}, true), "", errReply},
		"missing":         {refused, "", ErrRefused},
		"no reply":        {synced("[[["), "", errReply},
		"another type":    {synced(`{"return": "x"}`), "", errReply},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := DialAgent(t.Context(), guest(t, test.answer))
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			content, err := a.ReadFile(t.Context(), `C:\a`, 8)
			if !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, string(content)); diff != "" && err == nil {
				t.Error(diff)
			}
		})
	}
}
