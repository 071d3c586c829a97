package sandbox

import (
	"slices"
	"testing"

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
		{shellCmd, `attrib "C:\Program Files" /q`, []string{"attrib", `C:\Program Files`, "/q"}},
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
