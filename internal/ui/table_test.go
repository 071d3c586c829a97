package ui_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui"
)

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
