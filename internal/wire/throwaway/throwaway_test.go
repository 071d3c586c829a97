package throwaway_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/throwaway"
)

func TestNoteComesBack(t *testing.T) {
	want := throwaway.Note{Version: "v2", ExitCode: 7}
	built, err := throwaway.Build(strings.NewReader("MZ executable"), want)
	if err != nil {
		t.Fatal(err)
	}
	program, err := io.ReadAll(built)
	if err != nil {
		t.Fatal(err)
	}
	note, size, ok := throwaway.Read(bytes.NewReader(program), int64(len(program)))
	if !ok || note != want || size != int64(len("MZ executable")) {
		t.Errorf("got %+v, %d, %t", note, size, ok)
	}
	for _, cut := range []int{0, 1, len(program) - 1} {
		if _, _, ok := throwaway.Read(bytes.NewReader(program[:cut]), int64(cut)); ok {
			t.Errorf("the first %d bytes have a note", cut)
		}
	}
	if _, err := throwaway.Build(strings.NewReader(""), throwaway.Note{Version: strings.Repeat("v", 300)}); err == nil {
		t.Error("a note that is too long was accepted")
	}
}
