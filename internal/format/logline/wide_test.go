package logline_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

// wide returns text as PowerShell 5.1 writes it.
func wide(text string, bigEndian bool) string {
	var data []byte
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		if bigEndian {
			data = append(data, byte(unit>>8), byte(unit))
		} else {
			data = append(data, byte(unit), byte(unit>>8))
		}
	}
	return string(data)
}

// The text is the same, however the bytes are split into reads.
func TestText(t *testing.T) {
	long := strings.Repeat("zeile ä 😀 ઊ\r\n", 20_000)
	for name, c := range map[string]struct{ file, want string }{
		"little endian":         {wide(long, false), long},
		"big endian":            {wide(long, true), long},
		"UTF-8":                 {long, long},
		"a UTF-8 mark":          {"\ufeffx\n", "\ufeffx\n"},
		"nothing":               {"", ""},
		"one byte":              {"x", "x"},
		"a mark alone":          {wide("", false), ""},
		"half a character":      {wide("x😀", false)[:6], "x\ufffd"},
		"half of its half":      {wide("xy", false)[:5], "x"},
		"a second half alone":   {"\xff\xfe\x00\xdcx\x00", "\ufffdx"},
		"a first half, then no": {"\xff\xfe\x3d\xd8x\x00", "\ufffdx"},
	} {
		for way, from := range map[string]io.Reader{
			"at once": strings.NewReader(c.file), "a byte at a time": iotest.OneByteReader(strings.NewReader(c.file)),
			"with its end": iotest.DataErrReader(strings.NewReader(c.file)),
		} {
			got, err := io.ReadAll(logline.Text(from))
			if err != nil || string(got) != c.want {
				t.Errorf("%s, %s: %.40q (%d bytes), want %.40q (%d bytes), %v", name, way, got, len(got),
					c.want, len(c.want), err)
			}
		}
	}
	const some = "zeile ä 😀 ઊ\r\n"
	if err := iotest.TestReader(logline.Text(strings.NewReader(wide(some, false))), []byte(some)); err != nil {
		t.Error(err)
	}
	broken := io.MultiReader(strings.NewReader(wide("x", false)), iotest.ErrReader(io.ErrClosedPipe))
	if got, err := io.ReadAll(logline.Text(broken)); string(got) != "x" || err != io.ErrClosedPipe {
		t.Errorf("a reader that fails: %q, %v", got, err)
	}
}

func FuzzText(f *testing.F) {
	f.Add("zeile ä 😀 ઊ", true)
	f.Fuzz(func(t *testing.T, text string, bigEndian bool) {
		text = strings.ToValidUTF8(text, "")
		got, err := io.ReadAll(logline.Text(iotest.HalfReader(strings.NewReader(wide(text, bigEndian)))))
		if err != nil || string(got) != text {
			t.Errorf("%q, want %q, %v", got, text, err)
		}
		if n := (logline.Wide{}).Length([]byte(text)); n != int64(len(wide(text, false)))-logline.MarkSize {
			t.Errorf("%q has %d bytes of UTF-16", text, n)
		}
	})
}
