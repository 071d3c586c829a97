package v1alpha1

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCleanWindowsPath(t *testing.T) {
	accepted := map[string]string{
		`c:\Program Files\containerd\bin\containerd.exe`: `c:\Program Files\containerd\bin\containerd.exe`,
		`C:/k/kubelet.exe`:      `C:\k\kubelet.exe`,
		`C:\\k//kubelet.exe`:    `C:\k\kubelet.exe`,
		`c:\`:                   `c:\`,
		`C:\k\`:                 `C:\k`,
		`Z:\%TEMP%\a b.exe`:     `Z:\%TEMP%\a b.exe`,
		`c:\.hidden\a..b`:       `c:\.hidden\a..b`,
		`c:\nulls\console.exe`:  `c:\nulls\console.exe`,
		`c:\com\com10.exe`:      `c:\com\com10.exe`,
		`c:\größe\日本.exe`:       `c:\größe\日本.exe`,
		`c:\x nul`:              `c:\x nul`,
		`c:\ leading\ a`:        `c:\ leading\ a`,
		`c:\k\$(rm -rf)';&.exe`: `c:\k\$(rm -rf)';&.exe`,
	}
	for path, want := range accepted {
		if got, err := CleanWindowsPath(path); err != nil || got != want {
			t.Errorf("CleanWindowsPath(%q) = %q, %v, want %q", path, got, err, want)
		}
	}
	refused := map[string]string{ // each to a part of the expected error
		"":                                      "is empty",
		`k\kubelet.exe`:                         "is relative",
		`\k\kubelet.exe`:                        "is relative",
		`/k/kubelet.exe`:                        "is relative",
		`kubelet.exe`:                           "is relative",
		`.`:                                     "is relative",
		`c:`:                                    "relative to the current folder of drive C:",
		`c:kubelet.exe`:                         "relative to the current folder of drive C:",
		`é:\a.exe`:                              "is relative",
		`1:\a.exe`:                              "is relative",
		` c:\a.exe`:                             "is relative",
		`%ProgramFiles%\a.exe`:                  "environment variable",
		`$env:ProgramFiles\a.exe`:               "environment variable",
		`\\host\c$\a.exe`:                       "network path",
		`//host/c$/a.exe`:                       "network path",
		`\\.\c:\a.exe`:                          "device path",
		`//./c:/a.exe`:                          "device path",
		`\\.\PhysicalDrive0`:                    "device path",
		`\\?\c:\a.exe`:                          "forbids", // ?
		`\??\c:\a.exe`:                          "forbids",
		`c:\k\..\a.exe`:                         "component ..",
		`c:/../a.exe`:                           "component ..",
		`c:\.\a.exe`:                            "component .",
		`c:\a.exe:stream`:                       "alternate data stream",
		`c:\d:\a.exe`:                           "alternate data stream",
		`c:\a.exe::$DATA`:                       "alternate data stream",
		`c:\k\nul`:                              "device",
		`c:\k\NUL.exe`:                          "device",
		`c:\Con\a.exe`:                          "device",
		`c:\aux .txt`:                           "device",
		`c:\com1`:                               "device",
		`c:\LPT9.tar.gz`:                        "device",
		`c:\com²`:                               "device",
		`c:\conin$`:                             "device",
		`c:\a.exe.`:                             "drops",
		`c:\a.exe `:                             "drops",
		`c:\k.\a.exe`:                           "drops",
		`c:\...\a.exe`:                          "drops",
		`c:\a*.exe`:                             "forbids",
		`c:\a|b`:                                "forbids",
		`c:\"a"`:                                "forbids",
		"c:\new\bin.exe":                        "control character U+000A",
		"c:\\a\x00b":                            "control character U+0000",
		"c:\\a\u2028b":                          "control character U+2028",
		"c:\\a\xffb":                            "UTF-8",
		`c:\` + strings.Repeat("a", 236):        "a name of 236 characters",
		`c:\` + strings.Repeat(`aa\`, 80) + "a": "is 244 characters long",
	}
	for path, want := range refused {
		_, err := CleanWindowsPath(path)
		refusal, ok := errors.AsType[*PathError](err)
		switch {
		case !ok:
			t.Error("ok = false, want true")
		case !strings.Contains(refusal.What, want):
			t.Errorf("refusal.What lacks %q:\n%s", want, refusal.What)
		case refusal.Remedy == "":
			t.Errorf("refusal.Remedy is empty; CleanWindowsPath(%q): got %v, want %q", path, err, want)
		}
	}
}

// windowsPath generates texts that look like paths, valid or not.
func windowsPath() *rapid.Generator[string] {
	part := rapid.OneOf(
		rapid.SampledFrom([]string{`c:`, `\`, `/`, `..`, `.`, ` `, `:`, `nul`, `COM1`, `k`, `a.exe`, `\\.\`,
			`?`, "\n", `é`, `%A%`}),
		rapid.StringN(0, 4, -1),
	)
	return rapid.Custom(func(t *rapid.T) string {
		prefix := rapid.SampledFrom([]string{``, `c:\`, `C:/`, `\\`}).Draw(t, "prefix")
		return prefix + strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "parts"), "")
	})
}

func TestCleanPathIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := windowsPath().Draw(t, "path")
		clean, err := CleanWindowsPath(path)
		if err != nil {
			if _, ok := errors.AsType[*PathError](err); !ok || clean != "" {
				t.Fatalf("got %v and the path %q", err, clean)
			}
			return
		}
		if again, err := CleanWindowsPath(clean); err != nil || again != clean {
			t.Fatalf("cleaning %q again: %q, %v", clean, again, err)
		}
		switch {
		case !strings.HasPrefix(clean[1:], `:\`):
			t.Fatalf("clean[1:] = %q, want the prefix %q", clean[1:], `:\`)
		case strings.ContainsAny(clean, `/<>"|?*`):
			t.Fatalf("%q is not in the usual form", clean)
		case strings.Contains(clean, `\\`):
			t.Fatalf("clean contains %q:\n%s; %q is not in the usual form", `\\`, clean, clean)
		}
		for component := range strings.SplitSeq(clean[3:], `\`) {
			switch {
			case len(clean) == 3: // the drive alone
			case component == "":
				t.Fatalf("%q has an empty component", clean)
			case strings.TrimRight(component, ". ") != component:
				t.Fatalf("%q has the component %q, which ends in a dot or a space", clean, component)
			case strings.ContainsAny(component, ":\x00\n"):
				t.Fatalf("%q has the component %q with a character that no name has", clean, component)
			}
		}
		if len(clean) > len(path)+1 {
			t.Fatalf("%q became the longer %q", path, clean)
		}
	})
}

// The result depends neither on case nor on the separator.
func TestCleanPathIgnoresCaseAndSeparator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := windowsPath().Draw(t, "path")
		_, err := CleanWindowsPath(path)
		for _, same := range []string{asciiUpper(path), strings.ReplaceAll(path, `\`, "/"),
			strings.ReplaceAll(path, "/", `\`)} {
			if _, other := CleanWindowsPath(same); (other == nil) != (err == nil) {
				t.Fatalf("%q: %v, but %q: %v", path, err, same, other)
			}
		}
	})
}

func asciiUpper(text string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, text)
}

// A path of ordinary names is accepted; the same path with any dangerous
// addition is refused.
func TestDangerousPathsAreRefused(t *testing.T) {
	name := rapid.StringMatching(`[a-z][a-z0-9 _-]{0,6}[wyz]`) // no device ends in these
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(name, 1, 5).Draw(t, "names")
		path := `c:\` + strings.Join(names, `\`)
		if _, err := CleanWindowsPath(path); err != nil {
			t.Fatalf("%q is refused: %v", path, err)
		}
		i := rapid.IntRange(0, len(names)-1).Draw(t, "i")
		names[i] = rapid.SampledFrom([]string{"..", ".", names[i] + ":s", names[i] + ".", names[i] + " ", "nul",
			"Com7.txt", names[i] + "?", names[i] + "\t"}).Draw(t, "danger")
		if clean, err := CleanWindowsPath(`c:\` + strings.Join(names, `\`)); err == nil {
			t.Fatalf("%q is accepted", clean)
		}
	})
}
