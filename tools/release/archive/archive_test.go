package archive_test

import (
	"archive/zip"
	"bytes"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/tools/release/archive"
	"github.com/swdt-dev/swdt/tools/release/payload"
)

type writer func(io.Writer, []payload.File, time.Time) error

func written(t *testing.T, write writer, files []payload.File, modified time.Time) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, files, modified); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func files() []payload.File {
	return []payload.File{
		{Name: "swdt", Mode: payload.ModeProgram, Content: bytes.Repeat([]byte("program "), 1000)},
		{Name: "LICENSE", Mode: payload.ModeText, Content: []byte("licence")},
		{Name: "man/swdt.1", Mode: payload.ModeText, Content: []byte(".TH")},
	}
}

func TestArchivesAreReproducible(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	elsewhere := at.In(time.FixedZone("elsewhere", 5*60*60)).Add(time.Millisecond)
	other := files()
	slices.Reverse(other)
	changed := files()
	changed[0].Mode = 0o700
	for name, write := range map[string]writer{"tar.gz": archive.TarGz, "zip": archive.Zip} {
		first := written(t, write, files(), at)
		if !bytes.Equal(first, written(t, write, other, elsewhere)) {
			t.Errorf("%s: the order of the files, the zone or a fraction of a second changes the archive", name)
		}
		for what, different := range map[string][]byte{
			"a mode": written(t, write, changed, at), "the time": written(t, write, files(), at.Add(time.Hour)),
		} {
			if bytes.Equal(first, different) {
				t.Errorf("%s: %s does not change the archive", name, what)
			}
		}
	}
}

func TestZipKeepsModes(t *testing.T) {
	content := written(t, archive.Zip, files(), time.Unix(1_800_000_000, 0))
	reader, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range reader.File {
		want := payload.ModeText
		if file.Name == "swdt" {
			want = payload.ModeProgram
		}
		if file.Mode() != want {
			t.Errorf("%s has the mode %v, want %v", file.Name, file.Mode(), want)
		}
	}
}
