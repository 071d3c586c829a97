package network

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

// A VM reaches only resolvers that are not your machine's own, and of a hostile file only three.
func TestResolversOfAVM(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           nil,
		"nameserver 10.0.0.1\n":      {"10.0.0.1"},
		"nameserver 127.0.0.53\n":    nil,
		"nameserver 169.254.1.1\n":   nil,
		"nameserver 0.0.0.0\n":       nil,
		"nameserver fd00::1\n":       nil,
		"nameserver\nsearch 1.2.3.4": nil,
		"# nameserver 10.0.0.1\nnameserver 10.0.0.2 # ours\n": {"10.0.0.2"},
		"nameserver 10.0.0.1;reboot\n":                        nil,
		strings.Repeat("nameserver 10.0.0.7\n", 500):          {"10.0.0.7", "10.0.0.7", "10.0.0.7"},
		strings.Repeat("x", 1<<20) + "\nnameserver 10.0.0.1":  nil,
	} {
		var got []string
		for _, a := range parseResolvers(strings.NewReader(text)) {
			got = append(got, a.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
}

func TestNamesOfInterfaces(t *testing.T) {
	for name, valid := range map[string]bool{
		"br-kind": true, "swdt1a2b3c4d": true, "a23456789012345": true, "a234567890123456": false, "": false, ".": false,
		"..": false, "a/b": false, "a b": false, "a:b": false, "a\nb": false, "a\x00b": false,
	} {
		if got := validInterface(name) == nil; got != valid {
			t.Errorf("%q: %v, want %v", name, got, valid)
		}
	}
}

// Names of taps differ by VM and by user, and are names of interfaces.
func TestNamesOfTaps(t *testing.T) {
	seen := map[string]bool{}
	for _, vm := range []string{"a", "b", "1/a", "имя", strings.Repeat("x", 200)} {
		for owner := range 3 {
			name := TapName(vm, owner)
			if err := validInterface(name); err != nil || seen[name] || name != TapName(vm, owner) {
				t.Errorf("%q of user %d: %s, %v, seen before: %v", vm, owner, name, err, seen[name])
			}
			seen[name] = true
		}
	}
}

// $SUDO_UID counts only for root, and never as another form of root.
func TestTheOwnerOfVMs(t *testing.T) {
	for value, want := range map[string]int{
		"1000": 1000, "": os.Getuid(), "0": os.Getuid(), "-1": os.Getuid(), "me": os.Getuid(), "1000 ": os.Getuid(),
	} {
		t.Setenv("SUDO_UID", value)
		if os.Geteuid() != 0 {
			want = os.Getuid()
		}
		if got := Owner(); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
}
