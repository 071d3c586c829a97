package goroutines_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/goroutines"
)

// The forms of dumps, as Go's runtime writes them: runtime/traceback.go (goroutineheader, printcreatedby) of Go 1.12, 1.21 and
// 1.26. The functions are invented.
const forms = `=== BEGIN goroutine stack dump ===
goroutine 7 [syscall, 58 minutes, locked to thread]:
syscall.Syscall6(0x7ff80833ef40, 0x4, ...)
	/usr/local/go/src/runtime/syscall_windows.go:199 +0xed
example.com/a.(*T).call.func2()
	C:/a/b c/d.go:12 +0x1
created by example.com/a.(*T).call
	C:/a/d.go:10 +0x2

goroutine 8 [sync.Mutex.Lock, 3 minutes]:
sync.(*Mutex).Lock(...)
	sync/mutex.go:90
example.com/a.Generic[...]({0xc0, 0x1}, {0x0?, 0x2?})
	/a/d.go:13 +0x3
...23 frames elided...
created by example.com/a.start in goroutine 1
	/a/d.go:11 +0x2

    goroutine 9 gp=0xc000002380 m=0 mp=0x1a [running]:
    main.main()
    /root/go/a.go:9 +0x1
=== END goroutine stack dump ===
goroutine 10 [sel`

func TestFormsOfDumps(t *testing.T) {
	want := goroutines.Dump{Goroutines: []goroutines.Goroutine{
		{ID: 7, State: "syscall", Minutes: 58, Frames: []string{"syscall.Syscall6", "example.com/a.(*T).call.func2"},
			CreatedBy: "example.com/a.(*T).call"},
		{ID: 8, State: "sync.Mutex.Lock", Minutes: 3, Frames: []string{"sync.(*Mutex).Lock", "example.com/a.Generic[...]"},
			CreatedBy: "example.com/a.start"},
		{ID: 9, State: "running", Frames: []string{"main.main"}},
	}}
	escaped := `time="2026-11-30T10:00:00Z" level=info msg="` + strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(forms) + `"`
	for name, text := range map[string]string{"file": forms, "CRLF": strings.ReplaceAll(forms, "\n", "\r\n"), "log": escaped} {
		got, err := goroutines.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestEqualStacksAreOneGroup(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "goroutine %d [select, %d minutes]:\na.b(0x%x)\n\t/a.go:1\n\n", 200-i, i, i)
	}
	text.WriteString("goroutine 1 [select]:\na.c()\n")
	dump, err := goroutines.Parse(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	groups := dump.Groups()
	if len(groups) != 2 || groups[0].Count != 100 || groups[0].Minutes != 99 || len(groups[0].IDs) != goroutines.MostIDs ||
		groups[0].IDs[0] != 101 {
		t.Errorf("%+v", groups)
	}
}

// A node or a stranger may send anything: it is bounded, and no character of a name controls a terminal.
func TestAHostileDumpIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, text := range map[string]string{
		"escapes":    "goroutine 1 [\x1b]0;title\x07, 9 minutes]:\nevil\x1b[2J\u202e.f(\x00)\n",
		"long names": "goroutine 1 [select]:\n" + long + "(0x1)\ncreated by " + long + "\n",
		"numbers":    "goroutine 99999999999999999999 [select]:\na.b()\ngoroutine 9999999999999999999 [select, 99999999999 minutes]:\na.b()\n",
		"frames":     "goroutine 1 [select]:\n" + strings.Repeat("a.b()\n", 10_000),
		"goroutines": strings.Repeat("goroutine 1 [select]:\n", 200_000),
		"bytes":      strings.Repeat("goroutine 1 [select]:\na.b()\n\t/x.go:1\n", 500_000),
		"one line":   strings.Repeat("x", goroutines.MostBytes+10),
		"parens":     "goroutine 1 [select]:\n(((((\n)\n()\n\u00ff\xff(0x1)\n",
	} {
		dump, err := goroutines.Parse(strings.NewReader(text))
		if err != nil || len(dump.Goroutines) > 100_000 {
			t.Errorf("%s: %d goroutines, %v", name, len(dump.Goroutines), err)
		}
		for _, g := range dump.Goroutines[:min(len(dump.Goroutines), 10)] {
			all := append([]string{g.State, g.CreatedBy}, g.Frames...)
			for _, text := range all {
				if len(text) > 256 || strings.ContainsAny(text, "\x1b\x07\x00\u202e") {
					t.Errorf("%s: %q", name, text)
				}
			}
			if len(g.Frames) > 128 || g.Minutes < 0 {
				t.Errorf("%s: %d frames, %d minutes", name, len(g.Frames), g.Minutes)
			}
		}
	}
	if dump, err := goroutines.Parse(iotest.ErrReader(errors.ErrUnsupported)); !errors.Is(err, errors.ErrUnsupported) || len(dump.Goroutines) > 0 {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(forms)
	f.Fuzz(func(t *testing.T, text string) {
		dump, err := goroutines.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range dump.Groups() {
			if g.Count < 1 || len(g.IDs) < 1 {
				t.Errorf("%+v", g)
			}
		}
	})
}

// containerd appends each dump to its log: the last complete one counts, as text or with escaped line ends, and as it is
// without a mark. The marks are those of the function dumpStacks in containerd's cmd/containerd.
func TestTheLastCompleteDumpCounts(t *testing.T) {
	block := func(id int) string {
		return fmt.Sprintf("=== BEGIN goroutine stack dump ===\ngoroutine %d [select]:\na.b()\n=== END goroutine stack dump ===\n", id)
	}
	escaped := func(id int) string {
		return `time="2026-11-30T10:00:00Z" level=info msg="` + strings.ReplaceAll(block(id), "\n", `\n`) + "\"\n"
	}
	begun := "=== BEGIN goroutine stack dump ===\ngoroutine 9 [select]:\na.b()\n"
	for name, c := range map[string]struct {
		text       string
		id         uint64
		number, of int
		complete   bool
	}{
		"one":             {"log\n" + block(1) + "log\n", 1, 1, 1, true},
		"two":             {block(1) + "goroutine 7 [select]:\na.b()\n" + block(2) + "goroutine 8 [select]:\na.b()\n", 2, 2, 2, true},
		"the last is cut": {block(1) + block(2) + begun, 2, 2, 3, true},
		"the first is":    {begun + block(2), 2, 2, 2, true},
		"log":             {escaped(1) + "log\n" + escaped(2), 2, 2, 2, true},
		"cut":             {block(1)[40:] + begun, 9, 1, 1, false},
		"no marks":        {"goroutine 3 [select]:\na.b()\n", 3, 0, 0, true},
	} {
		part := goroutines.Last([]byte(c.text))
		dump, err := goroutines.Parse(bytes.NewReader(part.Text))
		if err != nil || len(dump.Goroutines) != 1 || dump.Goroutines[0].ID != c.id || part.Number != c.number || part.Of != c.of ||
			part.Complete != c.complete {
			t.Errorf("%s: %d of %d, complete: %t: %+v", name, part.Number, part.Of, part.Complete, dump)
		}
	}
}
