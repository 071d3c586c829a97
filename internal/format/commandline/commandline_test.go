package commandline_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spf13/pflag"

	"github.com/swdt-dev/swdt/internal/format/commandline"
)

func TestQuote(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{`C:\k\kubelet.exe`, `C:\k\kubelet.exe`},
		{`C:\Program Files\k.exe`, `"C:\Program Files\k.exe"`},
		{`--resolv-conf=`, `--resolv-conf=`},
		{``, `""`},
		{`say "hi"`, `"say \"hi\""`},
		{`C:\a b\`, `"C:\a b\\"`},
		{`a\"b`, `"a\\\"b"`},
	} {
		if got := commandline.Quote(c.arg); got != c.want {
			t.Errorf("Quote(%s) = %s, want %s", c.arg, got, c.want)
		}
	}
}

// A Windows program parses the same arguments that were written.
func TestJoinIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOfN(rapid.StringMatching(`[a-z =\\"\t]{0,8}`), 0, 5).Draw(t, "args")
		line := commandline.Join(append([]string{`C:\a b\x.exe`}, args...)...)
		if got := commandline.Split(line); !slices.Equal(got[1:], args) {
			t.Fatalf("%q became %s, read as %q", args, line, got)
		}
	})
}

func TestFlag(t *testing.T) {
	for line, want := range map[string]string{
		`"C:\k\kube-log-runner.exe" --log-file=C:/x C:\k\kubelet.exe --hostname-override=win-1 --v=2`: "win-1",
		`C:\k\kubelet.exe --hostname-override win-2`:                                                  "win-2",
		`C:\k\kubelet.exe -hostname-override=win-3`:                                                   "win-3",
		`C:\k\kubelet.exe "--hostname-override=a b"`:                                                  "a b",
		`C:\k\kubelet.exe --hostname-override`:                                                        "",
		`C:\k\kubelet.exe hostname-override=no`:                                                       "",
		``:                                                                                            "",
	} {
		if got := commandline.Flag(line, "hostname-override"); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// Switch agrees with the library that Kubernetes' programs use, for each line that they start with.
func TestSwitchIsThatOfPflag(t *testing.T) {
	for _, args := range []string{"", "--dsr", "--dsr --v=2", "--dsr --v 2", "--dsr=true", "--dsr=True", "--dsr=1", "--dsr=t", "--dsr=false",
		"--dsr=0", "--dsr --dsr=false", "--dsr=false --dsr", "--dsr false", "--dsr-other", "dsr", `"--dsr=true"`} {
		flags := pflag.NewFlagSet("kube-proxy", pflag.ContinueOnError)
		want := flags.Bool("dsr", false, "")
		flags.Int("v", 0, "")
		flags.Bool("dsr-other", false, "")
		if err := flags.Parse(commandline.Split("kube-proxy.exe " + args)[1:]); err != nil {
			t.Fatal(err)
		}
		if got := commandline.Switch("kube-proxy.exe "+args, "dsr"); got != *want {
			t.Errorf("%s: %t, want %t", args, got, *want)
		}
	}
	if commandline.Switch("kube-proxy.exe --dsr=yes", "dsr") {
		t.Error("kube-proxy does not start with --dsr=yes")
	}
}
