package vmguest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/winsetup"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
)

// setupBytes is the size of the program that Windows Setup loads into memory, in bytes. Real media
// have more; a watcher of an installation concludes from this much that Setup runs.
const setupBytes = 208 << 20

// SetupISO writes a CD that imitates the evaluation media of Windows Server 2022, and returns its
// file. Its Setup installs the guest on an empty disk by the rules of package winsetup; a mode
// makes that fail. The CD starts by UEFI, and waits for a key. If the parts of the CD were not
// built, the test is skipped as Disk describes.
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
	// The boot catalog cannot describe an image of this size: firmware takes 1 as "to the end of the CD".
	return mediatest.UDF(t, folder, mediatest.WindowsLabel, append(arguments, "-boot-load-size", "1")...)
}
