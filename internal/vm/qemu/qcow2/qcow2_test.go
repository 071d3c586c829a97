package qcow2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func image(change func(*header)) []byte {
	h := header{Magic: magic, Version: 3, ClusterBits: 16, Size: 1 << 30, RefcountOrder: 4, Length: 104}
	change(&h)
	raw, err := binary.Append(nil, binary.BigEndian, h)
	if err != nil {
		panic(err) // the header has a fixed size
	}
	return raw
}

func TestOnlyStandaloneImagesAreAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		content  []byte
		expected error
	}{
		"plain":             {image(func(*header) {}), nil},
		"dirty":             {image(func(h *header) { h.IncompatibleFeatures = dirty }), nil},
		"version 2":         {image(func(h *header) { h.Version, h.IncompatibleFeatures = 2, externalData }), nil},
		"a backing file":    {image(func(h *header) { h.BackingOffset, h.BackingSize = 1000, 11 }), ErrUnsafe},
		"only its offset":   {image(func(h *header) { h.BackingOffset = 1000 }), ErrUnsafe},
		"backed version 2":  {image(func(h *header) { h.Version, h.BackingOffset = 2, 1000 }), ErrUnsafe},
		"a data file":       {image(func(h *header) { h.IncompatibleFeatures = externalData }), ErrUnsafe},
		"an unknown bit":    {image(func(h *header) { h.IncompatibleFeatures = 1 << 60 }), ErrFormat},
		"encryption":        {image(func(h *header) { h.Crypt = 2 }), ErrFormat},
		"version 4":         {image(func(h *header) { h.Version = 4 }), ErrFormat},
		"no disk":           {image(func(h *header) { h.Size = 0 }), ErrFormat},
		"a negative disk":   {image(func(h *header) { h.Size = 1 << 63 }), ErrFormat},
		"a cut version 3":   {image(func(*header) {})[:80], ErrFormat},
		"empty":             {nil, ErrFormat},
		"text":              {[]byte(`json:{"driver":"file","filename":"/etc/shadow"}`), ErrFormat},
		"a virtual PC disk": {append([]byte("conectix"), make([]byte, 504)...), ErrFormat},
	} {
		path := filepath.Join(t.TempDir(), "disk")
		if err := os.WriteFile(path, test.content, 0o600); err != nil {
			t.Fatal(err)
		}
		size, err := Standalone(path)
		if !errors.Is(err, test.expected) || (err == nil) != (size == 1<<30) {
			t.Errorf("%s: %d, %v; expected %v", name, size, err, test.expected)
		}
	}
	if _, err := Standalone(t.TempDir()); !errors.Is(err, ErrFormat) {
		t.Errorf("a folder: %v", err)
	}
}

// The images that qemu-img itself makes, good and bad.
func TestImagesOfQEMU(t *testing.T) {
	if _, err := exec.LookPath("qemu-img"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("needs qemu-img: scripts/install-test-deps.sh installs it")
	}
	folder := t.TempDir()
	make := func(name string, options ...string) string {
		path := filepath.Join(folder, name)
		args := append([]string{"create", "-q"}, append(options, path, "10G")...)
		cmd := exec.CommandContext(t.Context(), "qemu-img", args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return path
	}
	base := make("base", "-f", "qcow2")
	for path, expected := range map[string]error{
		base: nil,
		make("v2", "-f", "qcow2", "-o", "compat=0.10"):                               nil,
		make("zstd", "-f", "qcow2", "-o", "compression_type=zstd,extended_l2=on"):    nil,
		make("overlay", "-f", "qcow2", "-F", "qcow2", "-b", base):                    ErrUnsafe,
		make("data", "-f", "qcow2", "-o", "data_file="+filepath.Join(folder, "raw")): ErrUnsafe,
		make("plain", "-f", "raw"):                                                   ErrFormat,
	} {
		size, err := Standalone(path)
		if !errors.Is(err, expected) || err == nil && size != 10<<30 {
			t.Errorf("%s: %d, %v; expected %v", path, size, err, expected)
		}
	}
}

func FuzzStandalone(f *testing.F) {
	f.Add(image(func(*header) {}))
	f.Add(image(func(h *header) { h.Version = 2 }))
	f.Fuzz(func(t *testing.T, content []byte) {
		size, err := standalone(bytes.NewReader(content))
		if (err == nil) != (size > 0) {
			t.Errorf("%d, %v", size, err)
		}
		if err == nil && !bytes.Equal(content[8:20], make([]byte, 12)) {
			t.Errorf("an image with a backing file was accepted: %x", content[:104])
		}
	})
}
