//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/testing/vmguest"
)

func TestSettingsOfACD(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  settings
	}{
		"keys alone, in a folder": {
			files: map[string]string{"ssh/administrators_authorized_keys": "# mine\nssh-ed25519 AAAA me\r\n\n"},
			want:  settings{Keys: []string{"ssh-ed25519 AAAA me"}},
		},
		"an answer file": {
			files: map[string]string{
				"Autounattend.xml": `<unattend xmlns="urn:schemas-microsoft-com:unattend"><settings><component>` +
					`<ComputerName>WIN-1</ComputerName></component></settings></unattend>`,
				"authorized_keys": "ssh-ed25519 AAAA",
			},
			want: settings{Hostname: "WIN-1", Keys: []string{"ssh-ed25519 AAAA"}},
		},
		"both, in capitals": {
			files: map[string]string{"SWDT-GUEST.JSON": `{"hostname": "vm"}`, "AUTHORIZED_KEYS": "ssh-ed25519 AAAA"},
			want:  settings{Hostname: "vm", Keys: []string{"ssh-ed25519 AAAA"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, text := range test.files {
				file = filepath.Join(folder, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := settingsBelow(folder)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if _, err := settingsBelow(t.TempDir()); !errors.Is(err, errNoSettings) {
		t.Errorf("an empty CD: %v", err)
	}
}

func TestACDChangesWhatItSets(t *testing.T) {
	old := settings{Hostname: "old", Preset: "node", Keys: []string{"a"}}
	got := old.with(settings{Hostname: "new", Shell: "powershell"})
	want := settings{Hostname: "new", Preset: "node", Shell: "powershell", Keys: []string{"a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestTestsWriteTheSameSettings checks that this package and package vmguest, whose ConfigCD writes the
// settings, use the same names of fields.
func TestTestsWriteTheSameSettings(t *testing.T) {
	text, err := json.Marshal(vmguest.Settings{
		Hostname: "a", Preset: "b", Shell: "c", Password: "d", AuthorizedKeys: []string{"e"},
		Address: "f", Gateway: "g", Restart: "h", Files: map[string]string{"i": "j"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got settings
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := settings{
		Hostname: "a", Preset: "b", Shell: "c", Password: "d", Keys: []string{"e"}, Address: "f", Gateway: "g", Restart: "h",
		Files: map[string]string{"i": "j"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if vmguest.SettingsFile != settingsFile {
		t.Errorf("tests write %s, the guest reads %s", vmguest.SettingsFile, settingsFile)
	}
}
