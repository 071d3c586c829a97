package windows

import (
	"path/filepath"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
)

// New returns the platform of the machine that this process runs on.
func New() *platform.Platform {
	run := processes{}
	keys := registryKeys{}
	wine := simulated() == "wine"
	if wine {
		wineHoldManager()
	}
	return &platform.Platform{
		Machine:   machine{processes: run, registry: keys},
		Services:  services{wine: wine},
		Registry:  keys,
		Roots:     roots{},
		Files:     files{},
		Processes: run,
		Features:  features{dism: systemFile("dism.exe"), processes: run},
		Firewall:  firewall{netsh: systemFile("netsh.exe"), processes: run, registry: keys},
		Network:   network{},
		Compute:   compute{},
	}
}

// systemFile returns the full path of a program of Windows. With the name
// alone, Windows would search a PATH that users can edit.
func systemFile(name string) string {
	folder, err := windows.GetSystemDirectory()
	if err != nil {
		folder = `C:\Windows\System32`
	}
	return filepath.Join(folder, name)
}
