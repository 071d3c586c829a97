//go:build linux || darwin

package trust_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/config/trust"
	"github.com/swdt-dev/swdt/internal/localfile"
)

// A kubeconfig whose bytes can change unseen is refused: one that others can write, a folder, a pipe.
func TestKubeconfigsThatCannotBeTrusted(t *testing.T) {
	for name, plant := range map[string]func(path string) error{
		"others can write it": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte(kubeconfig), 0o600), os.Chmod(path, 0o666))
		},
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := plant(filepath.Join(folder, "kubeconfig")); err != nil {
				t.Fatal(err)
			}
			_, err := claims(t, folder, throughPods)
			if err == nil || name == "others can write it" && !errors.As(err, new(*localfile.ForeignError)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A record that another account can change is not the user's word.
func TestARecordThatOthersCanWrite(t *testing.T) {
	newHome(t)
	home := os.Getenv("HOME")
	store, err := trust.UserStore()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "swdt.yaml")
	write(t, file, nodeFile)
	if _, err := store.Trust(file, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(home, ".config", "swdt"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, found, err := store.Of(file); found || !errors.As(err, new(*localfile.ForeignError)) {
		t.Errorf("found %v, %v", found, err)
	}
}
