//go:build unix

package earlier_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile/earlier"
)

// Another user who can write into the folder of the file neither stops swdt nor makes swdt write into
// a file of the attacker's choice.
func TestAHostileFolder(t *testing.T) {
	for name, plant := range map[string]func(path, victim string) error{
		"a named pipe":     func(path, _ string) error { return syscall.Mkfifo(path, 0o666) },
		"a folder":         func(path, _ string) error { return os.Mkdir(path, 0o777) },
		"a symbolic link":  func(path, victim string) error { return os.Symlink(victim, path) },
		"an endless file":  func(path, _ string) error { return os.Symlink("/dev/zero", path) },
		"a very long file": func(path, _ string) error { return os.WriteFile(path, make([]byte, 8<<20), 0o666) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path, victim := filepath.Join(folder, "times.json"), filepath.Join(folder, "victim")
			const content = `{"x":{"recent":[40]},"y":{"recent":[40]}}`
			if err := os.WriteFile(victim, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := plant(path, victim); err != nil {
				t.Fatal(err)
			}
			times := earlier.At(path)
			times.Of("x")
			times.Remember("x", time.Minute)
			if got, err := os.ReadFile(victim); err != nil || string(got) != content {
				t.Errorf("the victim has %s, %v", got, err)
			}
		})
	}
}
