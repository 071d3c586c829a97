package command

import (
	"slices"
	"testing"
)

func TestForShell(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"cmd", "/c", "dir", `C:\Program Files (x86)`},
			[]string{"cmd", "/c", "dir", `"C:\Program Files (x86)"`}},
		{[]string{`C:\Windows\System32\CMD.EXE`, "/s", "/C", "type", "a b"},
			[]string{`C:\Windows\System32\CMD.EXE`, "/s", "/C", "type", `"a b"`}},
		{[]string{"cmd", "/c", "dir C:\\k && echo done"}, nil},
		{[]string{"cmd", "/c", "echo", "one && exit", "3"}, nil},
		{[]string{"cmd", "/c", "dir", `"C:\Program Files"`}, nil},
		{[]string{"cmd", "a b"}, nil},
		{[]string{"kubelet.exe", "/c", "x", "a b"}, nil},
		{[]string{"cmd", "/c"}, nil},
		{[]string{"cmd"}, nil},
	} {
		want := c.want
		if want == nil {
			want = c.args
		}
		if got := ForShell(c.args); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", c.args, got, want)
		}
	}
}
