package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestEmptyHive walks the cells of a hive by their sizes, and follows what the header and the root key name.
func TestEmptyHive(t *testing.T) {
	hive := emptyHive()
	if len(hive) != 8192 || string(hive[:4]) != "regf" || string(hive[4096:4100]) != "hbin" {
		t.Fatalf("%d bytes that begin with %q and %q", len(hive), hive[:4], hive[4096:4100])
	}
	var sum uint32
	for at := 0; at < 512; at += 4 { // with the checksum, all is zero
		sum ^= binary.LittleEndian.Uint32(hive[at:])
	}
	if sum != 0 {
		t.Errorf("the checksum is wrong by %#x", sum)
	}
	bin := hive[4096:]
	cells := map[uint32]string{}
	for at := 32; at < len(bin); {
		size := int(int32(binary.LittleEndian.Uint32(bin[at:])))
		used := size < 0
		if size = max(size, -size); size == 0 || size%8 != 0 || at+size > len(bin) {
			t.Fatalf("the cell at %d has %d bytes", at, size)
		}
		if used {
			cells[uint32(at)] = string(bin[at+4 : at+6])
		}
		at += size
	}
	root := binary.LittleEndian.Uint32(hive[36:])
	security := binary.LittleEndian.Uint32(bin[root+4+44:])
	if len(cells) != 2 || cells[root] != "nk" || cells[security] != "sk" {
		t.Errorf("the root is at %d, its access list at %d, and the cells are %v", root, security, cells)
	}
}

// TestHiveForOtherReaders opens the hive with the tool of libhivex.
func TestHiveForOtherReaders(t *testing.T) {
	hivexsh, err := exec.LookPath("hivexsh")
	if err != nil {
		t.Skip("needs hivexsh")
	}
	file, script := filepath.Join(t.TempDir(), "hive"), filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, emptyHive(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("ls\nlsval\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(hivexsh, "-f", script, file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("hivexsh lists the keys and values of an empty hive: %v\n%s", err, out)
	}
}
