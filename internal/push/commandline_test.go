package push

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/format/commandline"
)

func TestWithArgs(t *testing.T) {
	const exe = `C:\Program Files\k\kubelet.exe`
	for _, c := range []struct{ line, want string }{
		{`"C:\Program Files\k\kubelet.exe" --old`, `"C:\Program Files\k\kubelet.exe" --new "a b"`},
		{`"c:/program files/k/KUBELET.exe"`, `"c:/program files/k/KUBELET.exe" --new "a b"`},
		{`C:\Program Files\k\kubelet.exe --old "x y"`, `C:\Program Files\k\kubelet.exe --new "a b"`},
		{`C:\Program Files\k\kubelet.exe`, `C:\Program Files\k\kubelet.exe --new "a b"`},
		{`"C:\k\kube-log-runner.exe" --log-file=C:/l.log "C:\Program Files\k\kubelet.exe" --old`,
			`"C:\k\kube-log-runner.exe" --log-file=C:/l.log "C:\Program Files\k\kubelet.exe" --new "a b"`},
		{`"C:\Program Files\k\kubelet.exe" --new "a b"  `, `"C:\Program Files\k\kubelet.exe" --new "a b"  `},
		{`C:\nssm.exe`, ""},
		{`C:\Program Files\k\kubelet.exe2 --old`, ""},
		{``, ""},
	} {
		got, err := withArgs(c.line, exe, []string{"--new", "a b"})
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s:\n got %s, %v\nwant %s", c.line, got, err, c.want)
		}
	}
}

func TestNoArgsRemovesThem(t *testing.T) {
	switch got, err := withArgs(`C:\k\kubelet.exe --old`, `C:\k\kubelet.exe`, []string{}); {
	case err != nil:
		t.Error(err)
	case got != `C:\k\kubelet.exe`:
		t.Errorf("got is %q, want %q", got, `C:\k\kubelet.exe`)
	}
}

// A Windows program reads exactly the arguments that were written, and writing the same arguments
// again changes nothing.
func TestArgsSurviveTheCommandLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOf(rapid.StringMatching(`[a-z =\\"\t]{0,8}`)).Draw(t, "args")
		before := rapid.SampledFrom([]string{`"C:\a b\x.exe" --old`, `C:\w.exe --flag "C:\a b\x.exe" y`}).Draw(t,
			"line")
		line, err := withArgs(before, `C:\a b\x.exe`, args)
		if err != nil {
			t.Fatal(err)
		}
		got := commandline.Split(line)
		at := slices.Index(got, `C:\a b\x.exe`)
		if at < 0 || !slices.Equal(got[at+1:], args) {
			t.Fatalf("%q became %s, read as %q", args, line, got)
		}
		again, err := withArgs(line, `C:\a b\x.exe`, args)
		if err != nil || again != line {
			t.Fatalf("written again: %s, %v; was %s", again, err, line)
		}
	})
}
