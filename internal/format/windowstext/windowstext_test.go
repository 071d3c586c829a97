package windowstext_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// wide returns text as UTF-16.
func wide(text string, big bool) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		high, low := byte(unit>>8), byte(unit)
		if !big {
			high, low = low, high
		}
		out.WriteByte(high)
		out.WriteByte(low)
	}
	return out.String()
}

func TestDecode(t *testing.T) {
	const text = "a = 1\nb = 'é𝄞'\n"
	for name, c := range map[string]struct {
		file     string
		encoding windowstext.Encoding
		want     string
	}{
		"plain":   {text, windowstext.UTF8, text},
		"empty":   {"", windowstext.UTF8, ""},
		"no line": {"a", windowstext.UTF8, "a"},
		"Set-Content -Encoding UTF8 of PowerShell 5.1": {"\ufeff" + text, windowstext.MarkedUTF8, text},
		// PowerShell 5.1's > and Out-File: containerd/containerd#4381, MicrosoftDocs/windowsserverdocs#6748.
		"PowerShell 5.1 >":                    {wide("\ufeff"+text, false), windowstext.UTF16LE, text},
		"Out-File -Encoding BigEndianUnicode": {wide("\ufeff"+text, true), windowstext.UTF16BE, text},
		"iconv -t UTF-16LE":                   {wide(text, false), windowstext.UnmarkedUTF16LE, text},
		"iconv -t UTF-16BE":                   {wide(text, true), windowstext.UnmarkedUTF16BE, text},
		"CR LF":                               {"a\r\nb\r\n", windowstext.UTF8, "a\nb\n"},
		// PowerShell/Win32-OpenSSH#862: text with CR LF that was written in text mode.
		"CR CR LF":         {"a\r\r\nb\r\r\n", windowstext.UTF8, "a\nb\n"},
		"CR CR LF, UTF-16": {wide("\ufeffa\r\r\nb\r\r\n", false), windowstext.UTF16LE, "a\nb\n"},
		"CR":               {"a\rb\r", windowstext.UTF8, "a\nb\n"},
		// A file after a loss of power: kubernetes/minikube#8195.
		"NUL tail":                         {"a\n\x00\x00\x00", windowstext.UTF8, "a\n"},
		"NUL tail without a line end":      {"a\x00\x00", windowstext.UTF8, "a\n"},
		"NUL tail, UTF-16":                 {wide("\ufeffa\r\n\x00\x00\x00", false), windowstext.UTF16LE, "a\n"},
		"NUL tail that a tool made a line": {"a\n\x00\x00\r\n", windowstext.UTF8, "a\n"},
		"COPY a + b":                       {"a\r\n\x1a", windowstext.UTF8, "a\n"},
		// A mark on a later line: herdrdev/herdr#3678.
		"files that were joined": {"\ufeffa\r\n\ufeffb\r\n", windowstext.MarkedUTF8, "a\nb\n"},
		"two marks":              {"\ufeff\ufeffa\n", windowstext.MarkedUTF8, "a\n"},
	} {
		got, err := windowstext.Decode([]byte(c.file))
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case got.Content != c.want || got.Encoding != c.encoding:
			t.Errorf("%s: %q, %s, want %q, %s", name, got.Content, got.Encoding, c.want, c.encoding)
		}
	}
}

func TestDecodeOfWhatIsNoText(t *testing.T) {
	for name, c := range map[string]struct {
		file     string
		encoding windowstext.Encoding
		line     int
	}{
		"a code page":                       {"# ok\r\r\nname: B\xfcro\n", windowstext.UTF8, 2},
		"a code page, marked":               {"\ufeffa\nb\n\xe4\n", windowstext.MarkedUTF8, 3},
		"half a character":                  {wide("\ufeffa\nb", false) + "x", windowstext.UTF16LE, 2},
		"half a pair":                       {wide("\ufeffa\n", false) + "\x00\xd8x\x00\n\x00", windowstext.UTF16LE, 2},
		"half a pair, big-endian":           {wide("\ufeffa\nb\nc", true) + "\xd8\x00", windowstext.UTF16BE, 3},
		"PowerShell's >> to a UTF-8 file":   {"a\n" + wide("b\r\n", false) + "c", windowstext.UTF8, 2},
		"UTF-32":                            {"\xff\xfe\x00\x00a\x00\x00\x00", windowstext.UTF32, 1},
		"nothing but NULs (minikube#11832)": {"\x00\x00\x00\x00", windowstext.UTF8, 1},
	} {
		text, err := windowstext.Decode([]byte(c.file))
		var refused *windowstext.Error
		switch {
		case !errors.As(err, &refused):
			t.Errorf("%s: %q, %v, want an *Error", name, text.Content, err)
		case refused.Encoding != c.encoding || refused.Line != c.line:
			t.Errorf("%s: %s, line %d, want %s, line %d", name, refused.Encoding, refused.Line, c.encoding, c.line)
		}
	}
}

// Encode keeps the encoding, the mark and the line ends of the file.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\r\r\n"}).Draw(t, "line end")
		lines := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("ab =é𝄞\ufffd"))), 2, 5).Draw(t, "lines")
		text := "a" + strings.Join(lines, "\n")
		file := strings.ReplaceAll(text, "\n", end)
		for _, file := range []string{file, "\ufeff" + file, wide(file, false), wide("\ufeff"+file, false),
			wide(file, true), wide("\ufeff"+file, true)} {
			decoded, err := windowstext.Decode([]byte(file))
			if err != nil {
				t.Fatalf("%q: %v", file, err)
			}
			if decoded.Content != text {
				t.Fatalf("%q: %q, want %q", file, decoded.Content, text)
			}
			if got := string(decoded.Encode(text)); got != file {
				t.Fatalf("%s: %q, want %q", decoded.Encoding, got, file)
			}
		}
	})
}

func TestExplain(t *testing.T) {
	refused := errors.New("invalid character")
	for name, c := range map[string]struct {
		file string
		line int // 0: the encoding is not the reason
	}{
		"plain":             {"a", 0},
		"accepted mark":     {"\ufeffa", 0},
		"UTF-16":            {wide("\ufeffa", false), 1},
		"UTF-16, no mark":   {wide("{}", true), 1},
		"NUL tail":          {"a\nb\n\x00", 3},
		"code page":         {"a\n\xe4", 2},
		"accepted mark, CP": {"\ufeffa\n\xe4", 2},
	} {
		err := windowstext.Explain([]byte(c.file), "containerd", refused, windowstext.MarkedUTF8)
		var explained *windowstext.Error
		switch {
		case !errors.Is(err, refused):
			t.Errorf("%s: %v does not wrap the program's error", name, err)
		case errors.As(err, &explained) != (c.line > 0):
			t.Errorf("%s: %v", name, err)
		case explained != nil && explained.Line != c.line:
			t.Errorf("%s: line %d, want %d", name, explained.Line, c.line)
		}
	}
	if err := windowstext.Explain([]byte(wide("\ufeffa", false)), "sshd", nil); err != nil {
		t.Errorf("a file that its reader accepts: %v", err)
	}
	var marked *windowstext.Error
	if err := windowstext.Explain([]byte("\ufeff{}"), "libcni", refused); !errors.As(err, &marked) ||
		marked.Encoding != windowstext.MarkedUTF8 {
		t.Errorf("a mark: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "a\r\r\n\x00", "\ufeffa\x1a", "\xff\xfea\x00\x00\xd8", "\xfe\xff\x00a\xdc"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		text, err := windowstext.Decode(file)
		if err != nil {
			return
		}
		again, err := windowstext.Decode(text.Encode(text.Content))
		if err != nil || again.Content != text.Content {
			t.Errorf("%q: %q, again %q, %v", file, text.Content, again.Content, err)
		}
	})
}
