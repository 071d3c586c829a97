package vm

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// No name of a node file leads out of the store, and no two VMs share a folder.
func TestNamesAreNoPaths(t *testing.T) {
	for _, name := range []string{"..", ".", "../x", "a/b", `a\b`, "/etc", ".locks", "NUL", "con.txt", "a.", "Win",
		"größe", "a b", strings.Repeat("a", 253)} {
		folder := folderName(name)
		switch {
		case folder == name:
			t.Errorf("%q is its own folder", name)
		case folder != filepath.Base(folder) || strings.HasPrefix(folder, "."):
			t.Errorf("%q has the folder %q, which is no plain name", name, folder)
		case len(folder) > 60:
			t.Errorf("%q has a folder of %d characters, want at most 60", name, len(folder))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if a != b && strings.EqualFold(folderName(a), folderName(b)) {
			t.Fatalf("%q and %q share the folder %q", a, b, folderName(a))
		}
		if strings.Trim(folderName(a), "abcdefghijklmnopqrstuvwxyz0123456789-_.~") != "" {
			t.Fatalf("%q has the folder %q", a, folderName(a))
		}
	})
}

// Another user of your machine cannot plant VMs.
func TestPlantedFoldersAreRefused(t *testing.T) {
	unsafe := func(err error) bool {
		_, ok := errors.AsType[*UnsafeError](err)
		return ok
	}
	open := t.TempDir()
	chmod(t, open, 0o777)
	if _, err := OpenStore(open); !unsafe(err) {
		t.Errorf("a store that all users can change: %v", err)
	}
	root := t.TempDir()
	chmod(t, root, 0o700)
	s, err := OpenStore(root)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	for _, folder := range []string{filepath.Join(root, "open"), filepath.Join(elsewhere, "linked")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		r := Record{Machine: Machine{Version: 1, Name: filepath.Base(folder), UUID: "u", Driver: "d"}, Complete: true}
		if err := writeRecord(folder, r); err != nil {
			t.Fatal(err)
		}
	}
	chmod(t, filepath.Join(root, "open"), 0o777)
	if err := os.Symlink(filepath.Join(elsewhere, "linked"), filepath.Join(root, "linked")); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"open", "linked"} {
		if _, err := s.Get(name); !unsafe(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if os.Geteuid() == 0 {
		chmod(t, filepath.Join(root, "open"), 0o700)
		if err := os.Chown(filepath.Join(root, "open"), 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get("open"); !unsafe(err) {
			t.Errorf("a folder of another user: %v", err)
		}
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// A folder without a record is not a VM's, and no command touches it.
func TestOnlyMarkedFoldersAreTouched(t *testing.T) {
	root := t.TempDir()
	s, err := OpenStore(root)
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(root, "mine")
	if err := os.Mkdir(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(mine, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("mine"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	r := Record{Machine: Machine{Version: 1, Name: "mine", UUID: "u", Driver: "d", Folder: s.folder("mine")}}
	if err := s.add(r, func(string) error { return nil }); err == nil {
		t.Error("a VM took the place of another folder")
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if all, err := s.All(); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// A guest cannot lead swdt to your machine, whatever its agent says.
func TestAddressesOfAHostileGuest(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	address := func(ip, source string, port int) Address { return Address{netip.MustParseAddr(ip), source, port} }
	all := []Address{
		address("127.0.0.1", "guest agent", 22), address("127.0.0.1", "guest agent", 6443),
		address("192.0.2.1", "guest agent", 22),
		address("::ffff:192.0.2.1", "guest agent", 22), address("::1", "guest agent", 22),
		address("0.0.0.0", "guest agent", 22),
		address("224.0.0.1", "guest agent", 22), address("fe80::1", "guest agent", 22),
		address("192.0.2.9", "guest agent", 0),
		address("2001:db8::7", "DHCP lease", 22), address("192.0.2.7", "guest agent", 22),
		address("192.0.2.8", "neighbour table", 22),
		address("127.0.0.1", "forward", 2222),
	}
	want := []Address{
		address("127.0.0.1", "forward", 2222), address("192.0.2.8", "neighbour table", 22),
		address("192.0.2.7", "guest agent", 22), address("2001:db8::7", "DHCP lease", 22),
	}
	same := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	if diff := cmp.Diff(want, usable(all, 2222, own), same); diff != "" {
		t.Error(diff)
	}
}

// The keys that a VM has shown stay its only ones when its port changes.
func TestPinMovesTheKeysToTheAddress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "known_hosts")
	if found, err := pin(path, "127.0.0.1:1"); found || err != nil {
		t.Errorf("without a file: %t, %v", found, err)
	}
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ"
	if err := os.WriteFile(path, []byte("# comment\n[127.0.0.1]:1 "+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := pin(path, "127.0.0.1:2"); !found || err != nil {
		t.Errorf("%t, %v", found, err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "# comment\n[127.0.0.1]:2 "+key+"\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// A record that is not one never makes swdt guess.
func FuzzReadRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"name":"a","uuid":"u","driver":"d"}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, recordFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := readRecord(folder)
		if err == nil && (r.Version != 1 || r.Folder != folder) {
			t.Errorf("%q is a record of version %d in %q, want 1 in %q", text, r.Version, r.Folder, folder)
		}
		if err == nil && CheckName(r.Name) != nil {
			t.Errorf("%q is a record of the invalid name %q", text, r.Name)
		}
		if _, ok := errors.AsType[*DamagedError](err); err != nil && !ok {
			t.Errorf("%T %v", err, err)
		}
	})
}
