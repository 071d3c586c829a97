package ssh_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/swdt-dev/swdt/internal/node/ssh"
)

// Names that `ssh` takes from its config: a Host with a pattern means them too, but not one for all hosts.
func TestNamesOfTheSSHConfig(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "config")
	text := "Host win-1 win-2\n  HostName 10.0.0.5\n  Port 2222\nHost lab-* !lab-9\n  HostName %h.example\nHost *\n  User admin\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := ssh.Options{Config: file, HomeDir: home}
	for name, want := range map[string]struct {
		address string
		listed  bool
	}{
		"win-1": {"10.0.0.5:2222", true}, "me@win-2": {"10.0.0.5:2222", true}, "lab-3": {"lab-3.example:22", true},
		"lab-9": {"lab-9:22", false}, "win-3": {"win-3:22", false}, "10.0.0.7:23": {"10.0.0.7:23", false},
	} {
		address, listed, err := ssh.Address(name, o)
		if err != nil || address != want.address || listed != want.listed {
			t.Errorf("%s: %s, %t, %v; want %+v", name, address, listed, err, want)
		}
	}
	if names := ssh.Listed(o); !slices.Equal(names, []string{"win-1", "win-2"}) {
		t.Errorf("listed: %q", names)
	}
}
