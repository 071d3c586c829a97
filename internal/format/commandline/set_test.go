package commandline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/format/commandline"
)

func TestSet(t *testing.T) {
	for line, want := range map[string]string{
		`C:\k\kubelet.exe --windows-service`:             `C:\k\kubelet.exe --windows-service --v=6`,
		`C:\k\kubelet.exe --v=2 --windows-service`:       `C:\k\kubelet.exe --v=6 --windows-service`,
		`C:\k\kubelet.exe -v 2  --windows-service`:       `C:\k\kubelet.exe -v 6  --windows-service`,
		`C:\k\kubelet.exe --v=1 --v=2`:                   `C:\k\kubelet.exe --v=1 --v=6`,
		`"C:\my k\kubelet.exe" "--config=a b" --v`:       `"C:\my k\kubelet.exe" "--config=a b" --v=6`,
		`C:\my k\kubelet.exe --config="a b"  `:           `C:\my k\kubelet.exe --config="a b" --v=6`,
		`log-runner.exe --v=9 c:/k/KUBELET.EXE --vm=x`:   `log-runner.exe --v=9 c:/k/KUBELET.EXE --vm=x --v=6`,
		`C:\k\kubelet --windows-service "--v" "2" --x=y`: `C:\k\kubelet --windows-service "--v" 6 --x=y`,
		`C:\k\kubelet.exe --v --x=y`:                     `C:\k\kubelet.exe --v=6 --x=y`, // as a bare boolean flag
		`C:\k\kubelet.exe --v "--x=y z"`:                 `C:\k\kubelet.exe --v=6 "--x=y z"`,
		`C:\k\kubelet.exe --v -9 --x=y`:                  `C:\k\kubelet.exe --v 6 --x=y`,
	} {
		got, ok := commandline.Set(line, "kubelet.exe", "6", "v")
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %v -want +got:\n%s", line, ok, diff)
		}
	}
	if got, ok := commandline.Set(`nssm.exe --v=2`, "kubelet.exe", "6", "v"); ok || got != `nssm.exe --v=2` {
		t.Errorf("a program that is not there: %s, %v", got, ok)
	}
}

func TestHas(t *testing.T) {
	line := `"C:\Program Files\containerd\bin\containerd.exe" --run-service -l info`
	switch {
	case !commandline.Has(line, "containerd.exe", "log-level", "l"):
		t.Error(`commandline.Has(line, "containerd.exe", "log-level", "l") is false, want true`)
	case commandline.Has(line, "containerd.exe", "log-level"):
		t.Error(`commandline.Has(line, "containerd.exe", "log-level") is true, want false`)
	case commandline.Has(line, "kubelet.exe", "l"):
		t.Error(`commandline.Has(line, "kubelet.exe", "l") is true, want false`)
	}
}

// For any command line, only the flag changes, and its new value is read back.
func TestSetChangesNothingElse(t *testing.T) {
	word := rapid.StringOf(rapid.SampledFrom([]rune(`ab -=\" `)))
	rapid.Check(t, func(t *rapid.T) {
		args := append([]string{`C:\k\kubelet.exe`}, rapid.SliceOf(word).Draw(t, "args")...)
		value := word.Draw(t, "value")
		before := commandline.Join(args...)
		after, ok := commandline.Set(before, "kubelet.exe", value, "verbosity")
		if !ok {
			t.Fatal("the program is not found")
		}
		want := append(args, "--verbosity="+value)
		if diff := cmp.Diff(want, commandline.Split(after)); diff != "" {
			t.Fatalf("%s\n%s\n%s", before, after, diff)
		}
		again, _ := commandline.Set(after, "kubelet.exe", "1", "verbosity")
		if got := commandline.Split(again); got[len(got)-1] != "--verbosity=1" || !strings.HasPrefix(again, before) {
			t.Fatalf("%s\n%s", after, again)
		}
	})
}

func TestChange(t *testing.T) {
	upper := func(value string) (string, bool) { return strings.ToUpper(value), value != "gone" }
	for line, want := range map[string]string{
		`C:\k\kubelet.exe --g=a  --x --g b --v=2`:       `C:\k\kubelet.exe --g=A  --x --g B --v=2`,
		`C:\k\kubelet.exe --g=gone --v=2`:               `C:\k\kubelet.exe --v=2`,
		`C:\k\kubelet.exe --v=2  --g gone`:              `C:\k\kubelet.exe --v=2`,
		`C:\k\kubelet.exe "--g=a b" --g=gone "--c=d e"`: `C:\k\kubelet.exe "--g=A B" "--c=d e"`,
		`runner.exe --g=a "C:\my k\kubelet.exe"`:        `runner.exe --g=a "C:\my k\kubelet.exe"`,
		`C:\k\kubelet.exe --g --v=2`:                    `C:\k\kubelet.exe --g=TRUE --v=2`, // programs read a bare flag as true
		`C:\k\kubelet.exe --v=2 --g`:                    `C:\k\kubelet.exe --v=2 --g=TRUE`,
	} {
		got, ok := commandline.Change(line, "kubelet.exe", upper, "g")
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %v -want +got:\n%s", line, ok, diff)
		}
	}
	if got, ok := commandline.Change(`C:\k\other.exe --g=a`, "kubelet.exe", upper, "g"); ok || got != `C:\k\other.exe --g=a` {
		t.Errorf("another program: %v %s", ok, got)
	}
}

// A flag without a value goes alone: the flag behind it stays. A flag that keeps its value stays as it is written.
func TestChangeOfABareFlag(t *testing.T) {
	const line = `C:\k\kube-proxy.exe --enable-dsr --source-vip=10.1.2.3 --v=4`
	for _, test := range []struct {
		keep bool
		want string
	}{{true, line}, {false, `C:\k\kube-proxy.exe --source-vip=10.1.2.3 --v=4`}} {
		got, ok := commandline.Change(line, "kube-proxy.exe", func(value string) (string, bool) {
			if value != "true" {
				t.Errorf("the value is %q", value)
			}
			return value, test.keep
		}, "enable-dsr")
		if !ok || got != test.want {
			t.Errorf("%v: %s, want %s", test.keep, got, test.want)
		}
	}
}

func TestFlagBeforeAnother(t *testing.T) {
	for line, want := range map[string]string{
		`kubelet.exe --a --b=1`: "", `kubelet.exe --a 1 --b=1`: "1", `kubelet.exe --a -1`: "-1", `kubelet.exe --a`: "",
	} {
		if got := commandline.Flag(line, "a"); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
