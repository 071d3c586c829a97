package hyperv

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// program returns the path of Windows PowerShell. It is in Windows' own folder, so that no
// program of that name in PATH is taken for it.
func (d *Driver) program() (string, error) {
	if d.options.PowerShell != "" {
		return d.options.PowerShell, nil
	}
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return "", err
	}
	return filepath.Join(system, "WindowsPowerShell", "v1.0", "powershell.exe"), nil
}
