package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// found returns the calls in a test file with these declarations, as FUNCTION CALL.
func found(t *testing.T, declarations string) (all []string) {
	t.Helper()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "p", "a_test.go"), "package p\n"+declarations)
	places, err := inFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		all = append(all, p.function+" "+p.call)
	}
	return all
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	for name, test := range map[string]struct {
		declarations string
		want         []string
	}{
		"a sleep":          {"func TestX() { time.Sleep(time.Hour) }", []string{"TestX time.Sleep"}},
		"outside":          {"var x = func() { time.Sleep(1) }", []string{"- time.Sleep"}},
		"a short limit":    {"func TestX() { <-time.After(29*time.Second) }", []string{"TestX time.After"}},
		"a long limit":     {"func TestX() { <-time.After(30*time.Second) }", nil},
		"a divided limit":  {"func TestX() { <-time.After(time.Minute/3) }", []string{"TestX time.After"}},
		"a zero division":  {"func TestX() { <-time.After(time.Minute/0) }", []string{"TestX time.After"}},
		"a long constant":  {"const limit = 2*time.Minute\nfunc TestX() { <-time.After(limit) }", nil},
		"a circle":         {"const a = b\nconst b = a\nfunc TestX() { <-time.After(a) }", []string{"TestX time.After"}},
		"an unknown limit": {"func TestX() { <-time.After(limit) }", []string{"TestX time.After"}},
		"contexts": {"func TestX() { context.WithTimeout(ctx, time.Second); context.WithTimeoutCause(ctx, 1, nil);" +
			" context.WithTimeout(ctx, time.Minute); context.WithDeadline(ctx, time.Now().Add(time.Second));" +
			" context.WithDeadline(ctx, time.Now().Add(time.Hour)) }",
			[]string{"TestX context.WithTimeout", "TestX context.WithTimeoutCause", "TestX context.WithDeadline"}},
		"a timer":      {"func TestX() { time.NewTimer(1); time.AfterFunc(1, f) }", []string{"TestX time.NewTimer", "TestX time.AfterFunc"}},
		"a bubble":     {"func TestX() { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }", nil},
		"a comparison": {"func TestX() { if time.Since(begun) > time.Minute { } }", []string{"TestX time.Since"}},
		"a comparison of a variable": {"func TestX() { switch took := time.Since(begun); { case took-1 < 5: } }",
			[]string{"TestX time.Since"}},
		"a time that is logged":       {"func TestX() { took := time.Since(begun); t.Log(took) }", nil},
		"beside a bubble":             {"func TestX() { synctest.Test(t, f(time.Sleep)); time.Sleep(1) }", []string{"TestX time.Sleep"}},
		"only in bubbles":             {"func TestX() { synctest.Test(t, func() { f() }) }\nfunc f() { g() }\nfunc g() { time.Sleep(1) }", nil},
		"in a bubble and beside":      {"func TestX() { f(); synctest.Test(t, f) }\nfunc f() { time.Sleep(1) }", []string{"f time.Sleep"}},
		"in no bubble":                {"func f() { time.Sleep(1) }", []string{"f time.Sleep"}},
		"it calls itself":             {"func TestX() { synctest.Test(t, f) }\nfunc f() { f(); time.Sleep(1) }", nil},
		"a sum with an unknown limit": {"func TestX() { <-time.After(limit+time.Minute) }", nil},
		"a closure with a bubble": {"func TestX() { try := func(f func()) { synctest.Test(t, func(*testing.T) { f() }) }\n" +
			"try(func() { time.Sleep(1) }) }", nil},
		"a time of a bubble": {"func TestX() { synctest.Test(t, func() { took = time.Since(begun) }); if took > 1 { } }", nil},
		"a helper with a bubble": {"func TestX() { inTime(t, func() { time.Sleep(1) }) }\n" +
			"func inTime(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := found(t, test.declarations); !slices.Equal(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

func TestFolders(t *testing.T) {
	folder := t.TempDir()
	const sleeps = "package p\nfunc f() { time.Sleep(1) }\n"
	for _, path := range []string{"b/b_test.go", "a/a_test.go", "a/product.go", "a/testdata/x_test.go", ".git/x_test.go"} {
		write(t, filepath.Join(folder, path), sleeps)
	}
	places, err := inFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := []place{{"a/a_test.go", 2, "f", "time.Sleep"}, {"b/b_test.go", 2, "f", "time.Sleep"}}
	if !slices.Equal(places, want) {
		t.Errorf("found %v, want %v", places, want)
	}
	write(t, filepath.Join(folder, "a", "broken_test.go"), "package")
	if _, err := inFolder(folder); err == nil {
		t.Error("a file that is no Go has no error")
	}
}

func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		accepted string
		fails    bool
		prints   string
	}{
		"accepted": {"# why\n\na_test.go f time.Sleep it plays a slow program\n", false, "1 places"},
		"new":      {"", true, "a_test.go:2: time.Sleep in f: "},
		"stale": {"a_test.go f time.Sleep it plays a slow program\nb_test.go f time.Sleep it is gone", true,
			"1 places"},
		"no reason": {"a_test.go f time.Sleep\n", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, filepath.Join(folder, "a_test.go"), "package p\nfunc f() { time.Sleep(1) }\n")
			write(t, filepath.Join(folder, "accepted.txt"), test.accepted)
			var out strings.Builder
			err := run(&out, filepath.Join(folder, "accepted.txt"), folder)
			if (err != nil) != test.fails || !strings.Contains(out.String(), test.prints) {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}
