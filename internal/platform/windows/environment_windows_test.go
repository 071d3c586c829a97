package windows

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unsafe"
)

// Windows searches a block whose names are sorted (Microsoft Learn, "Changing Environment Variables").
func TestEnvironmentBlock(t *testing.T) {
	block, err := environmentBlock([]string{"Path=old", "b=1", "A_B=2", "AB=3", "=D:=D:\\x", "=C:=C:\\y", "PATH=new", "EMPTY="})
	if err != nil {
		t.Fatal(err)
	}
	var text []uint16
	for at := unsafe.Pointer(block); len(text) < 2 || text[len(text)-1] != 0 || text[len(text)-2] != 0; at = unsafe.Add(at, 2) {
		text = append(text, *(*uint16)(at))
	}
	got := strings.Split(strings.TrimRight(string(utf16.Decode(text)), "\x00"), "\x00")
	want := []string{"=C:=C:\\y", "=D:=D:\\x", "AB=3", "A_B=2", "b=1", "EMPTY=", "PATH=new"}
	if !slices.Equal(got, want) {
		t.Errorf("the block is %q, want %q", got, want)
	}
	if _, err := environmentBlock([]string{"a=b\x00c"}); err == nil {
		t.Error("a NUL is accepted")
	}
}
