package vmguest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/winsetup"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
)

// setupBytes is the size of sources/boot.wim, the program that Windows Setup loads into memory, in
// bytes. On real media the file is larger. The code that watches an installation concludes from this
// number of bytes that Setup runs.
const setupBytes = 208 << 20

// SetupISO writes a CD that imitates the evaluation media of Windows Server 2022, and returns the path
// of its image. The CD's Setup installs the guest on an empty disk by the rules of package winsetup;
// mode selects how the installation ends. The CD starts by UEFI, and waits for a key. If the parts of
// the CD have not been built, SetupISO skips or fails the test, as Disk does.
func SetupISO(t testing.TB, mode winsetup.Mode) string {
	t.Helper()
	boot, system := built(t, "setup-boot.img"), built(t, "setup-system.img")
	if mode == winsetup.RebootLoop {
		system = built(t, "setup-reset.img")
	}
	folder := mediatest.WindowsFolder(t)
	mediatest.Write(t, folder, map[string]string{winsetup.ModeFile: fmt.Sprintf(`{"mode": %q}`, mode)})
	for name, source := range map[string]string{
		"efi/microsoft/boot/efisys.bin": boot, "sources/guest.img": system,
	} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(source, path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(folder, "sources", "boot.wim"), setupBytes); err != nil {
		t.Fatal(err)
	}
	arguments := append([]string{"-f"}, mediatest.BootArguments()...)
	// The boot catalog cannot hold the size of this image. Firmware reads the size 1 as "to the end of the CD".
	return mediatest.UDF(t, folder, mediatest.WindowsLabel, append(arguments, "-boot-load-size", "1")...)
}
