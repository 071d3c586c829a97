package simulated_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
)

// escape quotes an argument as syscall.EscapeArg does on Windows.
func escape(arg string) string {
	if arg != "" && !strings.ContainsAny(arg, " \t\"\\") {
		return arg
	}
	var b strings.Builder
	b.WriteByte('"')
	slashes := 0
	for _, c := range []byte(arg) {
		switch c {
		case '\\':
			slashes++
		case '"':
			b.WriteString(strings.Repeat(`\`, slashes+1))
			slashes = 0
		default:
			slashes = 0
		}
		b.WriteByte(c)
	}
	b.WriteString(strings.Repeat(`\`, slashes))
	b.WriteByte('"')
	return b.String()
}

func TestSplitCommandLineUndoesEscape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		args := rapid.SliceOf(rapid.StringOf(rapid.SampledFrom([]rune(`ab "\`+"\tü")))).Draw(t, "args")
		line := `"C:\Program Files\x.exe"`
		for _, arg := range args {
			line += " " + escape(arg)
		}
		want := append([]string{`C:\Program Files\x.exe`}, args...)
		if got := commandline.Split(line); !slices.Equal(got, want) {
			t.Fatalf("%s\ngot  %q\nwant %q", line, got, want)
		}
	})
}

// TestFilesAgainstAModel performs random operations on a few files and compares
// with a map of names to contents.
func TestFilesAgainstAModel(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	p := m.Process("p")
	const folder = `C:\model`
	rapid.Check(t, func(t *rapid.T) {
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		check(p.Files.MakeFolder(folder))
		defer func() {
			list, err := p.Files.List(folder)
			check(err)
			for _, f := range list {
				check(p.Files.Remove(f.Path))
			}
		}()
		free, err := p.Files.FreeBytes(folder)
		check(err)
		model := map[string][]byte{}
		name := rapid.SampledFrom([]string{"a", "b", "C"})
		path := func(name string) string { return folder + `\` + name }
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				n := name.Draw(t, "name")
				mode := rapid.SampledFrom([]platform.CreateMode{platform.CreateTruncate, platform.CreateAppend}).Draw(t,
					"mode")
				data := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "data"),
					rapid.SampledFrom([]int{1, 10_000}).Draw(t, "times"))
				w, err := p.Files.Create(path(n), mode)
				check(err)
				_, err = w.Write(data)
				check(err)
				check(w.Close())
				if mode == platform.CreateTruncate {
					model[n] = nil
				}
				model[n] = append(slices.Clone(model[n]), data...)
			},
			"rename": func(t *rapid.T) {
				from, to := name.Draw(t, "from"), name.Draw(t, "to")
				replace := rapid.Bool().Draw(t, "replace")
				err := p.Files.Rename(path(from), path(to), replace)
				data, exists := model[from]
				_, taken := model[to]
				if ok := exists && (!taken || replace || from == to); ok != (err == nil) {
					t.Fatalf("rename %s to %s: %v", from, to, err)
				}
				if err == nil && from != to {
					model[to] = data
					delete(model, from)
				}
			},
			"remove": func(t *rapid.T) {
				n := name.Draw(t, "name")
				_, exists := model[n]
				if err := p.Files.Remove(path(strings.ToUpper(n))); exists != (err == nil) {
					t.Fatalf("remove %s: %v", n, err)
				}
				delete(model, n)
			},
			"": func(t *rapid.T) {
				used := int64(0)
				for n, want := range model {
					r, err := p.Files.Open(path(n))
					check(err)
					got, err := io.ReadAll(r)
					check(err)
					check(r.Close())
					if !bytes.Equal(got, want) {
						t.Fatalf("%s has %d bytes, want %d", n, len(got), len(want))
					}
					used += int64(len(want))
				}
				if list, err := p.Files.List(folder); err != nil || len(list) != len(model) {
					t.Fatalf("%d files, %v; want %d", len(list), err, len(model))
				}
				if now, err := p.Files.FreeBytes(folder); err != nil || free-now != used {
					t.Fatalf("%d bytes are taken, %v; want %d", free-now, err, used)
				}
			},
		})
	})
}
