// Package vmguest provides tests with a guest that acts as a Windows virtual machine: a small
// Linux whose only program is e2e/vmguest, on a disk that lab/build.sh guest makes.
//
// The guest boots by UEFI from virtio-blk or SATA, has drivers for virtio-net and e1000e, answers
// the guest agent and the power button, and serves SSH on port 22 as a simulated Windows. The guest
// reads the first CD that has a file of Settings, or a file whose name ends in authorized_keys, to
// find out who may log in. Without Settings, the guest's name is the ComputerName of an answer file
// on that CD. The guest's lines on the first serial port begin with "guest: "; Ready is the last
// line of a boot.
package vmguest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/vm/disc"
)

const (
	// Ready is the text of the line that the guest prints when its SSH server answers.
	Ready = "guest: ssh is ready"
	// HostKey is the beginning of a line; the line ends in the fingerprint of the SSH server's key.
	HostKey = "guest: host key "
	// SettingsFile is the name of the file of Settings on a CD.
	SettingsFile = "swdt-guest.json"
	// User is the only user who can log in.
	User = "Administrator"
)

// Settings configure a guest. The guest keeps them on its disk, so a CD is needed at the first boot
// only.
type Settings struct {
	Hostname string `json:"hostname,omitempty"`
	// Preset names the content of a fresh disk: minimal (default), node or member, as
	// internal/platform/simulated describes them.
	Preset string `json:"preset,omitempty"`
	// Shell is the default shell: cmd (default) or powershell.
	Shell    string `json:"shell,omitempty"`
	Password string `json:"password,omitempty"`
	// AuthorizedKeys are lines as in OpenSSH's authorized_keys.
	AuthorizedKeys []string `json:"authorizedKeys,omitempty"`
	// Address includes the length of its prefix, as in 172.18.255.10/16. If Address and Gateway are
	// empty, the guest uses DHCP.
	Address string `json:"address,omitempty"`
	Gateway string `json:"gateway,omitempty"`
	// Files are written to the disk of a simulated Windows that boots for the first time: contents by path.
	Files map[string]string `json:"files,omitempty"`
	// Restart selects how the guest restarts if the simulated Windows restarts: "computer" (default)
	// resets the VM, and QEMU sends RESET; "windows" restarts only the simulated Windows, which takes
	// no time.
	Restart string `json:"restart,omitempty"`
}

// Disk returns the path of the qcow2 file of an installed guest that has not booted yet. Tests must
// not write to the file: use it as the backing file of an overlay. If the file has not been built,
// Disk skips the test, or fails it if SWDT_LAB_GUEST=required.
func Disk(t testing.TB) string { return built(t, "guest.qcow2") }

func built(t testing.TB, name string) string {
	t.Helper()
	lab := os.Getenv("SWDT_LAB")
	if lab == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		lab = filepath.Join(cache, "swdt", "lab")
	}
	file := filepath.Join(lab, "guest", name)
	if _, err := os.Stat(file); err != nil {
		remedy := "build it with `lab/build.sh guest`, after `scripts/install-test-deps.sh`; SWDT_LAB names another folder"
		if os.Getenv("SWDT_LAB_GUEST") == "required" {
			t.Fatalf("the guest of the lab is missing: %v; %s", err, remedy)
		}
		t.Skipf("needs the guest of the lab, %s: %s", file, remedy)
	}
	return file
}

// ConfigCD writes a CD with settings into a folder of the test, and returns the path of its image.
func ConfigCD(t testing.TB, s Settings) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	image, err := disc.New("SWDT", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if err := image.Add(SettingsFile, text); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.iso")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := image.WriteTo(f); err != nil {
		t.Fatal(err)
	}
	return file
}
