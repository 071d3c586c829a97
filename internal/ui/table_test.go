package ui_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/order"
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

func TestTableIsInTheOrderOfThePage(t *testing.T) {
	header := []string{"OWNER", "MEMORY↓"}
	rows := [][]string{{"b", "1.5 MB"}, {"c", ""}, {"a", ui.Bad("12.0 kB")}, {"d"}}
	for _, test := range []struct{ by, want string }{
		{"", "b c a d"}, {"owner", "a b c d"}, {"Memory", "a b c d"}, {"-memory", "b a c d"},
	} {
		var out strings.Builder
		page := ui.NewPage(&out, false)
		page.Sort = order.Parse(test.by)
		if err := errors.Join(ui.Table(page, header, rows), page.Flush()); err != nil {
			t.Fatal(err)
		}
		var owners []string
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[1:] {
			owners = append(owners, line[:1])
		}
		if got := strings.Join(owners, " "); got != test.want {
			t.Errorf("--sort-by %q: %s, want %s", test.by, got, test.want)
		}
	}
	if rows[0][0] != "b" {
		t.Errorf("the caller's rows were changed: %v", rows)
	}
	page := ui.NewPage(&strings.Builder{}, false)
	page.Sort = order.Parse("disk")
	if _, ok := errors.AsType[*ui.UnknownColumnError](ui.Table(page, header, rows)); !ok {
		t.Error("a table without the column is no UnknownColumnError")
	}
}
