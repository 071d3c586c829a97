//go:build !windows

package hyperv

import "runtime"

// program returns the stand-in for PowerShell of a test. There is no Hyper-V here.
func (d *Driver) program() (string, error) {
	if d.options.PowerShell != "" {
		return d.options.PowerShell, nil
	}
	return "", &SystemError{System: runtime.GOOS}
}
