package sandbox

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSplitLine(t *testing.T) {
	tests := []struct {
		kind shellKind
		line string
		want []part
	}{
		{shellCmd, `a "b & c" && d`, []part{{always, `a "b & c"`}, {ifOK, "d"}}},
		{shellCmd, `a || b & c`, []part{{always, "a"}, {ifFailed, "b"}, {always, "c"}}},
		{shellCmd, `a 2>&1`, []part{{always, "a 2>&1"}}},
		{shellCmd, `a; b`, []part{{always, "a; b"}}},
		{shellPowerShell, `a; 'b; c'; d`, []part{{always, "a"}, {always, "'b; c'"}, {always, "d"}}},
		{shellPowerShell, `& "C:\Program Files\x.exe" y`, []part{{always, `& "C:\Program Files\x.exe" y`}}},
	}
	for _, test := range tests {
		if got := splitLine(test.kind, test.line); !slices.Equal(got, test.want) {
			t.Errorf("%s: %s: got %v", test.kind, test.line, got)
		}
	}
}

func TestSplitWords(t *testing.T) {
	tests := []struct {
		kind shellKind
		text string
		want []string
	}{
		{shellCmd, `icacls "C:\Program Files" /q`, []string{"icacls", `C:\Program Files`, "/q"}},
		{shellCmd, `a'b c'`, []string{"a'b", "c'"}},
		{shellPowerShell, `a'b c'`, []string{"ab c"}},
		{shellCmd, `  `, nil},
		{shellCmd, `""`, []string{""}},
	}
	for _, test := range tests {
		if got := splitWords(test.kind, test.text); !slices.Equal(got, test.want) {
			t.Errorf("%s: %s: got %q", test.kind, test.text, got)
		}
	}
}

func TestWordsSurviveQuoting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zA-Z:\\/&;|. ]{1,8}`), 1, 5).Draw(t, "words")
		line := ""
		for _, word := range words {
			line += ` "` + word + `"`
		}
		parts := splitLine(shellCmd, line)
		if len(parts) != 1 {
			t.Fatalf("%s fell into %d parts", line, len(parts))
		}
		if got := splitWords(shellCmd, parts[0].text); !slices.Equal(got, words) {
			t.Fatalf("%s: got %q", line, got)
		}
	})
}

// growing is a file in memory that is written from its beginning to its end.
type growing struct {
	bytes.Buffer
	closed bool
}

func (g *growing) Sync() error               { return nil }
func (*growing) SetModified(time.Time) error { return nil }
func (g *growing) Close() error              { g.closed = true; return nil }

func TestConcurrentWritesAreBroughtIntoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "content")
		size := rapid.IntRange(1, 200).Draw(t, "chunk")
		var offsets []int
		for offset := 0; offset < len(content); offset += size {
			offsets = append(offsets, offset)
		}
		file := &growing{}
		w := &writerAt{file: file, waiting: map[int64][]byte{}}
		for _, offset := range rapid.Permutation(offsets).Draw(t, "order") {
			chunk := slices.Clone(content[offset:min(offset+size, len(content))])
			if n, err := w.WriteAt(chunk, int64(offset)); err != nil || n != len(chunk) {
				t.Fatalf("write at %d: %d, %v", offset, n, err)
			}
			clear(chunk) // the caller may use its buffer again
		}
		if err := w.Close(); err != nil || !file.closed || !bytes.Equal(file.Bytes(), content) {
			t.Fatalf("got %d bytes of %d, closed %v, %v", file.Len(), len(content), file.closed, err)
		}
	})
}

func TestAHoleIsAnError(t *testing.T) {
	w := &writerAt{file: &growing{}, waiting: map[int64][]byte{}}
	if _, err := w.WriteAt([]byte("late"), 100); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil {
		t.Error("a file with a hole was closed without an error")
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	w := &writerAt{file: &growing{}, waiting: map[int64][]byte{}}
	chunk := make([]byte, 1<<20)
	var err error
	for i := 1; i < 100 && err == nil; i++ {
		_, err = w.WriteAt(chunk, int64(i)<<20)
	}
	if err == nil {
		t.Error("100 MB were kept waiting")
	}
}

func TestWindowsPath(t *testing.T) {
	tests := map[string]string{
		"/C:/k/kubelet.exe":             `C:\k\kubelet.exe`,
		"/c:":                           `C:\`,
		"/C:/":                          `C:\`,
		"/C:/Users/Administrator/C:/k":  `C:\k`,
		"/C:/Users/Administrator/.kube": `C:\Users\Administrator\.kube`,
	}
	for given, want := range tests {
		if got, err := windowsPath(given); err != nil || got != want {
			t.Errorf("%s: got %s, %v", given, got, err)
		}
	}
	for _, given := range []string{"/", "/etc/passwd", "/CC:/x"} {
		if got, err := windowsPath(given); err == nil {
			t.Errorf("%s: got %s", given, got)
		}
	}
}

func TestIcaclsOptionsItDoesNotKnow(t *testing.T) {
	if _, err := applyIcacls("O:BAD:AI", []string{"/save"}); err == nil {
		t.Error("/save was accepted")
	}
}
