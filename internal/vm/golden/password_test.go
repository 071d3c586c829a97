package golden_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
)

const ownPassword = "Correct-Horse-7"

// inAnswers returns the password as an answer file has it: base64 of UTF-16LE.
func inAnswers(password string) string {
	var raw []byte
	for _, unit := range utf16.Encode([]rune(password + "AdministratorPassword")) {
		raw = append(raw, byte(unit), byte(unit>>8))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// The Administrator's password of a node file is on the CD of the first start, and in no other file of
// swdt's: not in the image, not in a record.
func TestThePasswordOfANodeFile(t *testing.T) {
	p, iso := newPlace(t), mediatest.WindowsISO(t)
	for source, set := range map[string]func(path string) string{
		"a file": func(path string) string {
			check(t, os.WriteFile(path, []byte(ownPassword+"\r\n"), 0o600))
			return "{file: " + path + "}"
		},
		"a variable": func(string) string {
			t.Setenv("OF_THE_TEST", ownPassword)
			return "{env: OF_THE_TEST}"
		},
	} {
		d := document(t, iso, "}\n    passwordFrom: "+set(filepath.Join(t.TempDir(), "secret"))+" #")
		synctest.Test(t, func(t *testing.T) {
			made, err := p.machines.Create(t.Context(), named(d, strings.ReplaceAll(source, " ", "-")), ui.Discard{})
			check(t, err)
			if made.PasswordFile != "" {
				t.Errorf("%s: the password's file is %s", source, made.PasswordFile)
			}
			if !strings.Contains(cd(t, made), inAnswers(ownPassword)) {
				t.Errorf("%s: the CD lacks the password", source)
			}
			with := append(filesWith(t, made.Folder), filesWith(t, p.root)...)
			if diff := cmp.Diff([]string{"config.iso"}, with); diff != "" {
				t.Errorf("%s: files with the password (-want +got):\n%s", source, diff)
			}
		})
	}
}

// filesWith returns the names of the files below a folder that have the password, in clear or as in
// answer files.
func filesWith(t *testing.T, folder string) (names []string) {
	t.Helper()
	check(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(ownPassword)) || bytes.Contains(content, []byte(inAnswers(ownPassword))) {
			names = append(names, entry.Name())
		}
		return err
	}))
	return names
}

// A password that is missing or that Windows would refuse is an error of the node file, before the
// installation begins. The error does not repeat it.
func TestAPasswordThatCannotBeUsed(t *testing.T) {
	p, iso := newPlace(t), mediatest.WindowsISO(t)
	t.Setenv("SIMPLE", "hunter2hunter2")
	for source, want := range map[string]string{
		"{env: OF_NO_PROCESS}": "the environment variable OF_NO_PROCESS is not set",
		"{file: none}":         "no such file", "{env: SIMPLE}": "is too simple",
	} {
		d := document(t, iso, "}\n    passwordFrom: "+source+" #")
		_, created := p.machines.Create(t.Context(), d, ui.Discard{})
		_, planned := p.machines.Plan(t.Context(), d, ui.Discard{})
		for what, err := range map[string]error{"create": created, "dry run": planned} {
			var refused *config.Error
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), "node.yaml:9: spec.machine.passwordFrom: ") {
				t.Errorf("%s with %s: %v", what, source, err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s with %s: the error has the password", what, source)
			}
		}
	}
	p.only(t)
}
