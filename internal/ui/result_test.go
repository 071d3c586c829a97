package ui_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui"
)

type sample struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

func TestPrint(t *testing.T) {
	value := sample{"kubelet", `c:\k\<kubelet>.exe`}
	text := func(w io.Writer) error {
		_, err := io.WriteString(w, "for people\n")
		return err
	}
	for format, want := range map[ui.Format]string{
		ui.Text: "for people\n",
		ui.JSON: "{\n  \"name\": \"kubelet\",\n  \"path\": \"c:\\\\k\\\\<kubelet>.exe\"\n}\n",
		ui.YAML: "name: kubelet\npath: c:\\k\\<kubelet>.exe\n",
	} {
		var out strings.Builder
		if err := ui.Print(&out, format, value, text); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v; want %q", format, out.String(), err, want)
		}
	}
}

func TestPrintReportsAFullDisk(t *testing.T) {
	full := errors.New("disk full")
	for _, format := range []ui.Format{ui.JSON, ui.YAML} {
		if err := ui.Print(failing{full}, format, sample{}, nil); !errors.Is(err, full) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestFormatIsAFlag(t *testing.T) {
	format := ui.Text
	if err := format.Set("yaml"); err != nil || format != ui.YAML {
		t.Fatalf("%v, %v", format, err)
	}
	if err := format.Set("xml"); err == nil || format != ui.YAML {
		t.Fatalf("xml was taken: %v", format)
	}
}

func TestTableAlignsWideAndEmptyCells(t *testing.T) {
	var out strings.Builder
	err := ui.Table(&out, []string{"NAME", "STATE", "MESSAGE"}, [][]string{
		{"kubelet", "running", ""},
		{"käse", "", "日本 wide"},
		{"x", "日本", "y"},
	})
	want := `
NAME     STATE    MESSAGE
kubelet  running  -
käse     -        日本 wide
x        日本     y
`
	if err != nil || out.String() != want[1:] {
		t.Fatalf("%v\n%s", err, out.String())
	}
}
