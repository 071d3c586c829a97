package media_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm/media"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
)

func TestReportOfDrivers(t *testing.T) {
	r := media.Report{File: "/iso/virtio win.iso", Media: inspect(t, mediatest.VirtioISO(t, "2k22", "w11"))}
	r.SizeBytes = 753_000_000
	var out bytes.Buffer
	page := ui.NewPage(&out, false)
	if err := errors.Join(r.WriteText(page), page.Flush()); err != nil {
		t.Fatal(err)
	}
	const want = `/iso/virtio win.iso: virtio drivers, 753.0 MB
  label  virtio-win-0.1.285

WINDOWS  DRIVERS
2k22     Balloon NetKVM vioserial viostor
w11      Balloon NetKVM vioserial viostor

In the node file:

spec:
  machine:
    image:
      drivers: "/iso/virtio win.iso"
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Without an edition that has a word, the node file has the index.
func TestNodeFileWithAnIndex(t *testing.T) {
	r := media.Report{File: "/iso/w11.iso", Media: media.Media{Kind: media.KindWindows,
		Editions: []media.Edition{{Index: 1}}}}
	const want = "spec:\n  machine:\n    image:\n      iso: /iso/w11.iso\n      edition: \"1\"\n"
	if diff := cmp.Diff(want, r.NodeFile()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDamagedListOfEditions(t *testing.T) {
	folder := mediatest.WindowsFolder(t)
	install := filepath.Join(folder, "sources", "install.wim")
	data, err := os.ReadFile(install)
	if err != nil {
		t.Fatal(err)
	}
	at := binary.LittleEndian.Uint64(data[80:])
	data[at] = 'x'
	if err := os.WriteFile(install, data, 0o600); err != nil {
		t.Fatal(err)
	}
	file, size := open(t, mediatest.UDF(t, folder, "LABEL"))
	_, err = media.Inspect(file, size)
	if err == nil {
		t.Fatal("the ISO was read")
	}
	beginning := "read the editions in sources/install.wim: byte 72 of the Windows image: "
	if !strings.HasPrefix(err.Error(), beginning) {
		t.Errorf("error %v, want %q first", err, beginning)
	}
	if remedy := "; the ISO is damaged: download or copy it again"; !strings.HasSuffix(err.Error(), remedy) {
		t.Errorf("error %v, want %q last", err, remedy)
	}
}

// A flipped byte anywhere in the structures that Inspect reads is refused or changes
// nothing: no other edition appears. The list of editions itself has no checksum here; the
// hash of the file reveals its changes.
func TestFlippedBytes(t *testing.T) {
	path := mediatest.WindowsISO(t)
	want := inspect(t, path)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document := bytes.Index(data, []byte("\xff\xfe<\x00W\x00I\x00M\x00"))
	flipped, refused := 0, 0
	for at := 16 * 2048; at < len(data); at += 3 {
		if data[at] == 0 || at >= document && at < document+20_000 {
			continue
		}
		flipped++
		data[at] ^= 0xff
		got, err := media.Inspect(bytes.NewReader(data), int64(len(data)))
		data[at] ^= 0xff
		if err != nil {
			refused++
			continue
		}
		if diff := cmp.Diff(want.Editions, got.Editions); diff != "" {
			t.Errorf("byte %d: %s", at, diff)
		}
	}
	if refused == 0 {
		t.Error("no flipped byte was refused")
	}
	t.Logf("%d of %d flipped bytes were refused", refused, flipped)
}
