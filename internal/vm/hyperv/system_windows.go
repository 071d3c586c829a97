package hyperv

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// program returns the path of Windows PowerShell, or of the stand-in that a test has set. The path
// is in Windows' own folder, so that swdt does not run another powershell.exe from PATH.
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
